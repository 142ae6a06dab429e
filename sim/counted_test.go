// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
)

// TestInterruptsThatAreOnlyCounted: without a calibration nothing is executed, and the
// interrupts by CPU and cause are those that the row counts, updates and what a
// scenario sends alike.
func TestInterruptsThatAreOnlyCounted(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range append(poke.Names(), "scenario") {
			named := strings.Replace(protocol, "scenario", "native", 1)
			c := config(t, arch, named, "gen:n=40,groups=3,order=grouped", "busy=3,idle=1,isolated=2,offline=1")
			c.Engine = TimedEngine
			if k := ledger.For(arch); protocol == "scenario" {
				if k == nil {
					continue
				}
				c.Scenario = &Scenario{Name: ledger.Scenarios()[0], Kernel: k}
			}
			j := newJob(t, c)
			if j.check() != nil {
				continue // cannot work there
			}
			e, err := NewEngine(j)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, enable := range []bool{true, false} {
				row, err := e.Update(t.Context(), enable)
				if err != nil {
					t.Fatal(err)
				}
				want += row.IPIs
			}
			got := 0
			for k := range cpus.NumCauses {
				got += int(e.Counts().TotalTaken(cpus.Cause(k)))
			}
			none := protocol == "native" || protocol == "word"
			if cause, ok := e.Counts().Conserved(); got != want || want == 0 && !none || !ok {
				t.Errorf("%s %s: %d interrupts by CPU, the rows count %d; %s conserved: %v", arch, protocol, got, want, cause, ok)
			}
		}
	}
}

// TestTimedRefusesToOnlyCountDefects: where nothing is executed nothing breaks, and
// nobody may take that for an answer.
func TestTimedRefusesToOnlyCountDefects(t *testing.T) {
	c := config(t, "arm64", "breakpoint", "gen:n=4", "2")
	c.Engine, c.Mutation = TimedEngine, "no-fence"
	if _, err := NewEngine(newJob(t, c)); err == nil || !strings.Contains(err.Error(), "no-fence") {
		t.Errorf("%v", err)
	}
}
