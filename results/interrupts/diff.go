// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
)

// RowDelta is what happened to one row between two snapshots.
type RowDelta struct {
	Name        string
	Description string
	CPUs        []int // one entry a count; nil for a row that counts for the whole machine
	Before      []int64
	After       []int64
	Delta       []int64 // After less Before; nil when the row is missing on one side
}

// Missing names the side that lacks the row: "before", "after", or "".
func (d RowDelta) Missing() string {
	switch {
	case d.Before == nil:
		return "before"
	case d.After == nil:
		return "after"
	}
	return ""
}

// Changed tells whether any count differs, or the row is missing on one side.
func (d RowDelta) Changed() bool {
	return d.Missing() != "" || slices.ContainsFunc(d.Delta, func(n int64) bool { return n != 0 })
}

// Diff compares two snapshots row by row: the rows of before in their order, then
// those that only after has. Both must be of the same online CPUs, since the
// counts of a CPU that came or went in between are lost.
func Diff(before, after Snapshot) ([]RowDelta, error) {
	if !slices.Equal(before.CPUs, after.CPUs) {
		return nil, cpuMismatch(before, after)
	}
	var deltas []RowDelta
	for _, b := range before.Rows {
		d := RowDelta{Name: b.Name, Description: b.Description, Before: b.Counts}
		a, both := after.Row(b.Name)
		if both {
			if len(a.Counts) != len(b.Counts) {
				return nil, wrong(after.Name, a.Line, a.Name,
					fmt.Sprintf("the row has %s, before it has %d", spelling.Several(len(a.Counts), "count"), len(b.Counts)))
			}
			d.After = a.Counts
			d.Delta = make([]int64, len(a.Counts))
			for i := range a.Counts {
				d.Delta[i] = grown(b.Counts[i], a.Counts[i])
			}
			if d.Description == "" {
				d.Description = a.Description
			}
		}
		if !before.Global(b) {
			d.CPUs = before.CPUs
		}
		deltas = append(deltas, d)
	}
	for _, a := range after.Rows {
		if _, both := before.Row(a.Name); both {
			continue
		}
		d := RowDelta{Name: a.Name, Description: a.Description, After: a.Counts}
		if !after.Global(a) {
			d.CPUs = after.CPUs
		}
		deltas = append(deltas, d)
	}
	return deltas, nil
}

// grown is how much a counter grew. The kernel's have 32 bits (irq_cpustat_t,
// arch/x86/include/asm/hardirq.h; struct irqstat, include/linux/irqdesc.h): one that fell by more
// than half of their range began anew at 0.
func grown(before, after int64) int64 {
	const all = 1 << 32
	if before < all && before-after > all/2 {
		return after - before + all
	}
	return after - before
}

// cpuMismatch names the first CPU that only one of the snapshots has.
func cpuMismatch(before, after Snapshot) error {
	for _, s := range [][2]Snapshot{{after, before}, {before, after}} {
		for _, c := range s[0].CPUs {
			if !slices.Contains(s[1].CPUs, c) {
				return wrong(s[0].Name, 0, fmt.Sprintf("CPU%d", c), "this CPU is not in "+s[1].Name+
					": both must be of the same CPUs")
			}
		}
	}
	return wrong(after.Name, 0, "", "the CPUs stand in another order than in "+before.Name)
}
