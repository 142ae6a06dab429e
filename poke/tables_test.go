// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
)

// TestTables holds the sets against tables that are told apart by number: a walk is broken where the table that it
// entered was freed before it reads there.
func TestTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var c Commons
		const patchers = 3
		live, next := 0, 1        // the table's number, 0 for none
		var gone []int            // tables with an entry in their place
		freed := map[int]bool{}   // by number
		inside := [patchers]int{} // the table that a patcher has entered
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch op := rapid.SampledFrom([]Op{Walk, Split, Collapse, Free}).Draw(rt, "op"); op {
			case Walk:
				who := rapid.IntRange(0, patchers-1).Draw(rt, "patcher")
				if inside[who] == 0 {
					if below := c.Tables.readEntry(who); below != (live != 0) {
						rt.Fatalf("leads to a table: %v, want %v", below, live != 0)
					}
					inside[who] = live
					continue
				}
				broken := c.Tables.readTable(who, 7)
				if want := freed[inside[who]]; (broken != nil) != want {
					rt.Fatalf("patcher %d in table %d: %v, want broken %v", who, inside[who], broken, want)
				} else if want && (broken.Property != cpus.FreedTable || broken.CPU != 7) {
					rt.Fatalf("%+v", broken)
				}
				inside[who] = 0
			case Split:
				if c.Tables.reshape(op); live == 0 {
					live, next = next, next+1
				}
			case Collapse:
				if c.Tables.reshape(op); live != 0 {
					gone, live = append(gone, live), 0
				}
			case Free:
				c.Tables.reshape(op)
				for _, table := range gone {
					freed[table] = true
				}
				gone = nil
			}
		}
	})
}

// TestMasks: interrupts are held back between the two entries of a masked walk, and nowhere else.
func TestMasks(t *testing.T) {
	for _, masked := range []bool{false, true} {
		x := &paper{below: true}
		p := &Patcher{Code: &cpus.Code{}, Plan: []Step{{Op: Walk, Masked: masked}, {Op: Raise}}}
		var got []bool
		for range 3 {
			got = append(got, p.Masks())
			if _, err := p.Step(t.Context(), x, nil); err != nil {
				t.Fatal(err)
			}
		}
		if want := [3]bool{false, masked, false}; [3]bool(got) != want {
			t.Errorf("masked %v: %v, want %v", masked, got, want)
		}
	}
}
