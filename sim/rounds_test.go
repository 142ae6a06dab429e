// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestRoundsAreHeldAgainstThePlan: one interrupt more or less than the rounds of
// a plan make is a violation, but where a lazy round may have left out an
// isolated CPU, or a busy one may have been offline.
func TestRoundsAreHeldAgainstThePlan(t *testing.T) {
	const rounds = 3
	for _, tt := range []struct {
		what     string
		protocol string
		cpu      int
		add      int
		want     string
	}{
		{"a busy CPU was offline", "goes offline", 1, -2, ""},
		{"an isolated CPU is left out", "goes offline", 2, -1, "isolated cpu 2 took 2 interrupts"},
		{"a busy CPU takes one more", "goes offline", 1, 1, "busy cpu 1 took 4 interrupts"},
		{"nothing", "breakpoint", 1, 0, ""},
		{"a busy CPU is left out", "breakpoint", 1, -1,
			"busy cpu 1 took 2 interrupts and sent 0 rounds of 3; at most 0 of these may leave it out"},
		{"a busy CPU takes one more", "breakpoint", 1, 1, "busy cpu 1 took 4 interrupts"},
		{"the sender takes one", "breakpoint", 0, 1, "busy cpu 0 took 1 interrupts and sent 3 rounds of 3"},
		{"an isolated CPU is left out", "breakpoint", 2, -1,
			"isolated cpu 2 took 2 interrupts and sent 0 rounds of 3; at most 0 of these may leave it out"},
		{"nothing", "breakpoint-lazy", 1, 0, ""},
		{"a busy CPU is left out", "breakpoint-lazy", 1, -1, "busy cpu 1 took 2 interrupts"},
		{"an isolated CPU is left out", "breakpoint-lazy", 2, -1, ""},
		{"an isolated CPU is left out of all", "breakpoint-lazy", 2, -rounds, ""},
		{"an isolated CPU takes one more", "breakpoint-lazy", 2, 1,
			"isolated cpu 2 took 4 interrupts and sent 0 rounds of 3; at most 3 of these may leave it out"},
	} {
		goes, protocol := tt.protocol == "goes offline", tt.protocol
		if goes {
			protocol = "breakpoint"
		}
		l := newLive(t, newJob(t, config(t, "x86_64", protocol, "gen:n=4", "busy=2,isolated=1,offline=1")))
		l.goes = goes
		row := RunRow{}
		row.Rounds = rounds
		if tt.protocol == "breakpoint-lazy" {
			row.Lazy = rounds
		}
		row.Counts = cpus.Counts{Taken: make([][cpus.NumCauses]uint64, 4), Rounds: make([][cpus.NumCauses]uint64, 4)}
		row.Counts.Rounds[0][cpus.Sync] = rounds
		row.Counts.Taken[1][cpus.Sync], row.Counts.Taken[2][cpus.Sync] = rounds, rounds
		row.Counts.Taken[tt.cpu][cpus.Sync] += uint64(tt.add)
		row.Counts.Sent[cpus.Sync] = uint64(2*rounds + tt.add)
		l.checkRounds(l.job, &row)
		v := l.Violations()
		switch {
		case tt.want == "" && len(v) > 0:
			t.Errorf("%s, %s: %v", tt.protocol, tt.what, v)
		case tt.want != "" && (len(v) != 1 || v[0].Property != cpus.Conservation || !strings.Contains(v[0].Why, tt.want)):
			t.Errorf("%s, %s: %v, want %s", tt.protocol, tt.what, v, tt.want)
		}
		if (goes || tt.protocol == "breakpoint-lazy") && row.IPIs != 2*rounds+tt.add {
			t.Errorf("%s, %s: %d interrupts in the row", tt.protocol, tt.what, row.IPIs)
		}
	}
}

// TestLazyRoundsSpareIsolatedCPUs: an isolated CPU is interrupted by a lazy round
// only when it happens to be in the kernel, which is seldom, and catches up: nothing
// is violated.
func TestLazyRoundsSpareIsolatedCPUs(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		l := newLive(t, newJob(t, config(t, arch, "breakpoint-lazy", "gen:n=2000", "busy=2,isolated=2")))
		var spared, all uint64
		for i := range 10 {
			row := update(t, l, i%2 == 0)
			if row.Violations != 0 || row.Lost != 0 || row.Rounds != 3*8 || row.Lazy != row.Rounds {
				t.Errorf("%s: %d violations, %d lost calls, %d rounds, %d lazy: %v", arch, row.Violations, row.Lost, row.Rounds,
					row.Lazy, l.Violations())
			}
			all += 2 * uint64(row.Rounds)
			for cpu := 2; cpu < 4; cpu++ {
				spared += uint64(row.Rounds) - row.Counts.Taken[cpu][cpus.Sync]
			}
		}
		if spared < all*3/4 {
			t.Errorf("%s: isolated CPUs were spared only %d of %d interrupts", arch, spared, all)
		}
	}
}

// TestPlanOfFile: a job with a protocol from a file is one with that protocol,
// and says how to ask for it again.
func TestPlanOfFile(t *testing.T) {
	for _, sh := range poke.ShippedPlans() {
		p, err := poke.ParseProtocol("dir of/"+sh.Name+".plan", sh.Text)
		if err != nil {
			t.Fatal(err)
		}
		if sh.Name == "word-rounds" { // has no name among the built-in ones
			continue
		}
		c := config(t, "riscv64", sh.Name, "gen:n=40,groups=3", "4")
		built := newJob(t, c)
		c.Plan, c.Protocol = p, ""
		j := newJob(t, c)
		want, err := built.Plan()
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.Plan()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v; %d steps, want %d", sh.Name, err, len(got), len(want))
		}
		if flags := Command(j.Flags()...); j.Protocol != sh.Name ||
			!strings.Contains(flags, " --plan 'dir of/"+sh.Name+".plan' ") || strings.Contains(flags, "--protocol") {
			t.Errorf("%s: protocol %q, flags %s", sh.Name, j.Protocol, flags)
		}
		if s := j.String(); !strings.Contains(s, sh.Name+" of dir of/"+sh.Name+".plan,") {
			t.Errorf("%s: %s", sh.Name, s)
		}
	}
}
