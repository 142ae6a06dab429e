// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestAuditInWords: what does not add up is told with both numbers, and what does is not told.
func TestAuditInWords(t *testing.T) {
	j := newJob(t, config(t, "x86_64", "breakpoint", "gen:n=4", "busy=3,offline=1"))
	// Three rounds from CPU 0 to two others.
	row := func(change func(*RunRow)) *RunRow {
		r := &RunRow{Modelled: &Modelled{}, Calls: 9, Tallies: make([]cpus.Tally, 4)}
		r.Rounds, r.Counts = 3, cpus.NewCounts(4)
		r.Counts.Rounds[0][cpus.Sync], r.Counts.Sent[cpus.Sync] = 3, 6
		r.Counts.Taken[1][cpus.Sync], r.Counts.Taken[2][cpus.Sync] = 3, 3
		r.Tallies[1][cpus.Begun], r.Tallies[1][cpus.Traced], r.Tallies[2][cpus.Begun] = 6, 4, 4
		r.Tallies[2][cpus.Untraced], r.Tallies[2][cpus.Broken] = 5, 1
		change(r)
		return r
	}
	for _, tt := range []struct {
		change func(*RunRow)
		want   []string
	}{
		{func(*RunRow) {}, nil},
		{func(r *RunRow) { r.Calls = 8 }, []string{"10 calls were begun, 9 ended"}},
		{func(r *RunRow) { r.Calls = 10 }, []string{"10 calls were begun, 11 ended"}},
		{func(r *RunRow) { r.Modelled.Deferred = 1 }, []string{"6 targets and 1 left out of 3 rounds to 2 CPUs: want 6"}},
		{func(r *RunRow) { r.Counts.Sent[cpus.Sync] = 5 },
			[]string{"cause sync: 6 interrupts taken, 5 sent", "5 targets and 0 left out of 3 rounds to 2 CPUs: want 6"}},
		{func(r *RunRow) { r.Counts.Taken[3][cpus.Stop] = 1 }, []string{"cause stop: 1 interrupts taken, 0 sent"}},
		{func(r *RunRow) { r.Rounds = 4 }, []string{"cause sync: 3 rounds were sent, the plan has 4",
			"cause sync: busy cpu 0 took 0 interrupts and sent 3 rounds of 4; at most 0 of these may leave it out",
			"cause sync: busy cpu 1 took 3 interrupts and sent 0 rounds of 4; at most 0 of these may leave it out",
			"cause sync: busy cpu 2 took 3 interrupts and sent 0 rounds of 4; at most 0 of these may leave it out"}},
	} {
		var r reports
		a, one := audit{machine: &r}, row(tt.change)
		a.checkRounds(j, one)
		a.checkDeferred(j, one)
		a.checkCalls(one)
		var got []string
		for _, v := range r.list {
			if got = append(got, v.Why); v.Property != cpus.Conservation || v.CPU != -1 || v.Site != -1 {
				t.Errorf("%+v", v)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestSitesInWords: a site that is not as it should be is told with what stands there and what should.
func TestSitesInWords(t *testing.T) {
	var r reports // whose sites hold zeros
	a := audit{machine: &r, len: 3, literals: true}
	patch := poke.Patch{Site: 7, Addr: 0x40, NewOps: 0x1040}
	patch.New = 0x12e8 // the first byte is the lowest
	a.checkSites([]poke.Patch{{Site: 6}, patch})
	var got []string
	for _, v := range r.list {
		got = append(got, v.Bytes+": "+v.Why)
		if v.Property != cpus.BrokenSite || v.Site != 7 || v.Addr != 0x40 || v.CPU != -1 {
			t.Errorf("%+v", v)
		}
	}
	if want := []string{"00 00 00: the update is over and left this instead of e8 12 00",
		"0x0: the update is over and left this ops in the literal instead of 0x1040"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
