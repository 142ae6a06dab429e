// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestMutationsAreMet: what a protocol lacks shows, where CPUs go on fetching old text for
// long enough: and not where they do not.
func TestMutationsAreMet(t *testing.T) {
	for _, tt := range []struct {
		mutation string
		want     cpus.Property
		lag      bool // it takes CPUs that fetch old text
	}{
		{"drop-sync-1", cpus.TornFetch, true}, {"no-breakpoint", cpus.TornFetch, true},
		{"late-publish", cpus.UnhandledBreakpoint, false}, {"early-release", cpus.UnhandledBreakpoint, false},
		{"overfull-batch", cpus.Overflow, false},
	} {
		for _, lag := range []float64{0, 1e5} {
			found := 0
			for seed := range uint64(20) {
				k := plainCosts()
				k.FetchLag, k.Calls = lag, 5e6
				// Few slots: who traps at one site has seen all stores so far.
				c := plain("x86_64", "native", 300, "8", k)
				c.Slots, c.Seed, c.mutation = 4, seed, tt.mutation
				r := newRig(t, c)
				r.toggle()
				found += r.found()[tt.want]
			}
			if want := lag > 0 || !tt.lag; (found > 0) != want {
				t.Errorf("%s: %d times %s where old text is fetched for up to %.0f ns", tt.mutation, found, tt.want, lag)
			}
		}
	}
}
