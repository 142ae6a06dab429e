// SPDX-License-Identifier: Apache-2.0

package cpus

import "testing"

// TestCodecSite: a packed CPU tells its site in every phase of a call and of the handler,
// the first of the handler among them, and nowhere else.
func TestCodecSite(t *testing.T) {
	f := newFixture(t, "x86_64", 3, busy(1), noHandler{}, Weak)
	k := Codec{Code: f.code, Ops: []uint64{0}, CPUs: 1}
	k.Acts = append(k.Acts, CPU{}.Act)
	for _, p := range []Phase{Again, Entered, Calling, Trapped, Searching, Leaving, Returning, Missed, Retrying, Doubting} {
		w := k.Pack(&CPU{Task: Task{Phase: p, Site: 2}})
		if site, about := k.Site(w); site != 2 || !about {
			t.Errorf("a CPU %s site 2: site %d, about one: %v", p, site, about)
		}
		if site, _ := k.Site(k.WithSite(w, 1)); site != 1 {
			t.Errorf("a CPU %s site 1: site %d", p, site)
		}
	}
	for _, phases := range [][2]Phase{{Boundary}, {Asleep}, {Interrupted, Boundary}, {Interrupted, Stopped}, {Stopped}, {Arriving},
		{Resuming}} {
		c := CPU{Task: Task{Phase: phases[0]}, Back: phases[1]}
		if site, about := k.Site(k.Pack(&c)); about {
			t.Errorf("a CPU %s (back to %s): about site %d", c.Phase, c.Back, site)
		}
	}
}
