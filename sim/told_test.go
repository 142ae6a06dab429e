// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// reports is a machine that keeps what is reported of it.
type reports struct{ list []cpus.Violation }

func (r *reports) Peek(int) isa.Text       { return 0 }
func (r *reports) Literal(int) uint64      { return 0 }
func (r *reports) Report(v cpus.Violation) { r.list = append(r.list, v) }

// TestStoresAreCounted: a store too many is told, as is one too few; the plan's own are not.
func TestStoresAreCounted(t *testing.T) {
	u := &poke.Update{Plan: []poke.Step{{Op: poke.Write, To: 3}, {Op: poke.Sync}, {Op: poke.Write, From: 1, To: 3}}}
	for _, stores := range []int{4, 5, 6} {
		var r reports
		audit{machine: &r}.checkStores(u, stores)
		if told := len(r.list) > 0; told != (stores != 5) || told && r.list[0].Property != cpus.Conservation {
			t.Errorf("%d stores: %v", stores, r.list)
		}
	}
}

// TestConfigInWords: a configuration in a sentence says what differs from the defaults, and nothing else.
func TestConfigInWords(t *testing.T) {
	c := config(t, "x86_64", "breakpoint", "gen:n=5", "4")
	plain := c.String()
	if want := "x86_64 breakpoint, buffer 256, order table, 4 CPUs, gen:n=5, lookup btree, fetch weak"; plain != want {
		t.Errorf("%q, want %q", plain, want)
	}
	if c.Migrate = true; c.String() != plain+", migrate" {
		t.Errorf("%q, want %q and its migration", c.String(), plain)
	}
}
