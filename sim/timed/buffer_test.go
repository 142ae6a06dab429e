// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestStoresOvertake: stores that no fence pushes out become visible in any order, each of
// them once; where a fence follows, in theirs.
func TestStoresOvertake(t *testing.T) {
	const sites = 40
	overtaken, late := 0, 0
	for seed := range uint64(20) {
		for _, fence := range []string{"", "    Fence if stores-buffered\n"} {
			r := newRig(t, rigged{
				Config: Config{Costs: new(plainCosts()), Seed: seed}, arch: "arm64", roles: "2", sites: sites,
				plan: parsed(t, "    Write word\n"+fence),
			})
			end := Nanos(r.update(true).Update)
			var all, after []int32 // in order of arrival
			for _, st := range r.text.log {
				if all = append(all, st.site); st.at > end {
					after = append(after, st.site)
				}
			}
			if fence != "" {
				if !slices.IsSorted(all) || len(all) != sites || len(after) > 0 {
					t.Errorf("seed %d: stores before a fence arrive as %v, %v after it", seed, all, after)
				}
				continue
			}
			if !slices.IsSorted(all) {
				overtaken++
			}
			if !slices.IsSorted(after) {
				late++
			}
			if slices.Sort(all); len(slices.Compact(all)) != sites {
				t.Errorf("seed %d: %d of %d stores arrived", seed, len(all), sites)
			}
		}
	}
	if overtaken < 10 || late < 10 {
		t.Errorf("of 20 updates without a fence stores overtook each other in %d, and when all was written in %d",
			overtaken, late)
	}
}

// TestStoresOfOneSiteKeepTheirOrder: whatever waits, the last store to a site is there in
// the end.
func TestStoresOfOneSiteKeepTheirOrder(t *testing.T) {
	for seed := range uint64(20) {
		r := newRig(t, rigged{
			Config: Config{Costs: new(plainCosts()), Seed: seed}, arch: "arm64", roles: "2", sites: 60,
			plan: parsed(t, "    Publish\n    Write breakpoint\n    Write head\n    Unpublish\n    WaitHandlers\n"),
		})
		r.update(true)
		for _, p := range r.enable {
			if got := r.Peek(int(p.Site)); got != p.New {
				t.Fatalf("seed %d: site %d holds %x, want %x", seed, p.Site, got, p.New)
			}
		}
	}
}

// TestNoFenceIsMet: without fences a breakpoint arrives or goes too late for somebody, on
// the instruction sets that have store buffers; with them nothing breaks.
func TestNoFenceIsMet(t *testing.T) {
	for _, arch := range []string{"arm64", "riscv64"} {
		for _, mutation := range []string{"", "no-fence"} {
			k := plainCosts()
			k.Calls = 5e6
			c := plain(arch, "breakpoint", 300, "8", k)
			c.Slots, c.mutation = 16, mutation
			r := newRig(t, c)
			r.toggle()
			if n := r.found()[cpus.UnhandledBreakpoint]; (n > 0) != (mutation != "") {
				t.Errorf("%s %q: %v", arch, mutation, r.found())
			}
		}
	}
}

// TestPromisesWaitForTheirStores: an update that is over while its stores wait is caught by
// every call of these sites, however long ago they were written.
func TestPromisesWaitForTheirStores(t *testing.T) {
	k := plainCosts()
	k.FetchLag, k.Calls = 0, 5e6 // nobody fetches what is old but for the buffer
	c := plain("riscv64", "stop-machine", 50, "4", k)
	c.mutation = "no-fence"
	r := newRig(t, c)
	r.toggle()
	if r.found()[cpus.StaleAfterCompletion] == 0 {
		t.Errorf("%v", r.found())
	}
}

// TestStoresGoWhereThePageIsMapped: of two sites the one whose page was mapped last gets
// the stores of both, and that is reported.
func TestStoresGoWhereThePageIsMapped(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, plan := range []struct {
			steps  string
			broken bool
		}{
			{"    for each patch\n        Map\n        Write word\n        Fence if stores-buffered\n    end\n", false},
			{"    for each patch\n        Map\n    end\n    Write word\n    Fence if stores-buffered\n", true},
		} {
			c := plain(arch, "", 2, "1", plainCosts())
			c.plan = parsed(t, plan.steps)
			r := newRig(t, c)
			r.update(true)
			left := r.Peek(0) == r.enable[0].Old
			if n := r.found()[cpus.WrongPage]; (n == 1) != plan.broken || left != plan.broken {
				t.Errorf("%s: %q: %v, site 0 was left as it was: %v", arch, plan.steps, r.found(), left)
			}
		}
	}
}
