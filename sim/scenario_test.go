// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sim/timed"
)

// TestScenarioTakes: switched on and off on the timed engine with all that a kernel
// sends for it, every receiver takes what the quietest CPU of the real kernel took
// (x86_64 6.12: 3 x 168 + 49 and 46; 67 and 64 with the graph tracer; arm64 6.12: 4;
// riscv64 7.2: n + 4 remote fences and 1 interrupt).
func TestScenarioTakes(t *testing.T) {
	for _, c := range []struct {
		kernel          string
		scenario        ledger.Scenario
		enable, disable int
		other           int      // in a row of the other kind
		state           []string // without the steps that it takes off: 11 pokes, a key
	}{
		{"x86_64-6.12", ledger.FunctionTracer, 3*168 + 49, 3*168 + 46, 0, nil},
		{"x86_64-6.12", ledger.FunctionGraph, 3*168 + 67, 3*168 + 64, 0, nil},
		{"arm64-6.12", ledger.FunctionTracer, 4, 4, 0, nil},
		{"riscv64-7.2", ledger.FunctionTracer, 41845 + 4, 41845 + 4, 1, nil},
		{"x86_64-6.12", ledger.FunctionTracer, 3*168 + 49 - 33, 3*168 + 46 - 33, 0, []string{"recording=on"}},
		{"x86_64-6.12", ledger.FunctionTracer, 3*168 + 49 - 3, 3*168 + 46 - 3, 0, []string{"probe=sched_switch:1"}},
		{"arm64-6.12", ledger.FunctionTracer, 3, 3, 0, []string{"sched_schedstats=on", "probe=sched_switch:1"}},
	} {
		k, err := ledger.Named(c.kernel)
		if err != nil {
			t.Fatal(err)
		}
		cfg := timedConfig(t, k.Arch, "native", records.DefaultFor(k.Arch), "busy=2,isolated=1,idle=1", plainCosts())
		k = k.In(c.state)
		cfg.Scenario = &Scenario{Name: c.scenario, Kernel: k}
		predicted, planned := replayed(t, k, c.scenario, cfg.Table), totals(t, cfg)
		m := newTimedFor(t, cfg, timed.HotOnly)
		for i, row := range toggle(t, m) {
			want := []int{c.enable, c.disable}[i]
			for cpu := 1; cpu < len(cfg.Roles); cpu++ {
				sum := 0
				for cause := range cpus.NumCauses {
					sum += int(row.Counts.Taken[cpu][cause])
				}
				if sum != want+c.other {
					t.Errorf("%s, %s, %s: cpu %d takes %d interrupts, the kernel's took %d", c.kernel, c.scenario, row.Direction, cpu,
						sum, want+c.other)
				}
			}
			if predicted[i] != want+c.other || planned[i] != want+c.other {
				t.Errorf("%s, %s, %s: predicted %d, planned %d, the kernel's took %d", c.kernel, c.scenario, row.Direction,
					predicted[i], planned[i], want+c.other)
			}
			if row.IPIsPerCPU != want || row.OtherIPIsPerCPU != c.other {
				t.Errorf("%s, %s, %s: %d and %d interrupts per CPU in the row, want %d and %d",
					c.kernel, c.scenario, row.Direction, row.IPIsPerCPU, row.OtherIPIsPerCPU, want, c.other)
			}
		}
		for _, v := range m.Violations() {
			t.Error(v)
		}
	}
}

// replayed is what a receiver takes in all rows, on and off, as kernel predict has it.
func replayed(t *testing.T, k *ledger.Kernel, s ledger.Scenario, table *records.Table) (sums [2]int) {
	t.Helper()
	r, err := k.NewReplay(table)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sums {
		lines, err := r.Switch(string(s), i == 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			sums[i] += l.Rounds()
		}
	}
	return sums
}

// totals is the same as plan has it.
func totals(t *testing.T, c Config) (sums [2]int) {
	t.Helper()
	both, err := Switches(&c)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range both {
		rows, err := s.Ledger(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Total() {
				sums[i] += r.Entry.Rounds()
			}
		}
	}
	return sums
}

// TestPokesOfAScenario: a site of the kernel's own changes as the protocol says where that sends so many rounds; else
// by a store, a fence behind it, and the rounds; and what fetches nothing afresh are rounds alone.
func TestPokesOfAScenario(t *testing.T) {
	j := newJob(t, timedConfig(t, "x86_64", "native", "gen:n=4", "2", plainCosts()))
	for _, tt := range []struct {
		cause  cpus.Cause
		rounds int
		want   string
	}{
		{cpus.StaticKey, 2, "Write word 0, Fence, Sync 1, Sync 2, Write word 1, Fence, Sync 1, Sync 2"},
		{cpus.StaticKey, 0, "Write word 0, Fence, Write word 1, Fence"},
		{cpus.CoreSync, 2, "Sync 1, Sync 2, Sync 1, Sync 2"},
		{cpus.Stop, 1, "StopMachine, Resume, StopMachine, Resume"},
	} {
		s, err := j.sites()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.addAux(j, 2); err != nil {
			t.Fatal(err)
		}
		part := j.entryPart(s, ledger.Entry{Cause: tt.cause, Pokes: 2, RoundsPerPoke: tt.rounds})
		got := spelling.Each(part.Plan, poke.Step.String)
		if strings.Join(got, ", ") != tt.want || part.Cause != tt.cause {
			t.Errorf("%s: %q, want %s", tt.cause, got, tt.want)
		}
		for i, p := range part.Patches { // it goes back next time
			if back := s.aux.patch[i]; back.Old != p.New || back.New != p.Old || p.Site != int32(4+i) || p.Old == p.New {
				t.Errorf("%s: patch %d is %+v, and then %+v", tt.cause, i, p, back)
			}
		}
	}
}
