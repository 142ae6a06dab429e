// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"github.com/textpoke/textpoke/kernels/calibration"
)

// Extra is what attaching takes beside what calibrations know, in nanoseconds.
// Nobody is known to have published any of these: they are assumed orders.
type Extra struct {
	Walk     float64 // one record looked at, with a lookup that mostly finds nothing
	Entry    float64 // one entry put into a hash
	Allocate float64 // one allocation
	Image    float64 // one trampoline generated and copied to where it runs
}

// Assumed are orders of magnitude: a quarter of a cache line of 64 bytes that
// comes in order with one comparison or two; a store to a line of another bucket;
// a kmalloc; some tens of instructions emitted and a page filled.
var Assumed = Extra{Walk: 2, Entry: 15, Allocate: 30, Image: 20_000}

// Machine is what times are modelled for.
type Machine struct {
	*calibration.Calibration
	Extra
	round float64 // to all other CPUs
}

// NewMachine is a machine with what a calibration says.
func NewMachine(c *calibration.Calibration, x Extra) *Machine {
	return &Machine{c, x, c.Costs.Round(c.CPUs - 1)}
}

// Part is one step of the way to the whole time.
type Part struct {
	Name  string
	Count int64
	NS    float64 // modelled, of all of them together
}

// PartNames are the parts that Waterfall has, in its order.
var PartNames = []string{"stores to sites", "rounds for sites", "entry calls", "trampolines made",
	"trampoline rounds", "records walked", "hash entries", "allocations", "grace periods"}

// Waterfall is how the time of counts is made up. Making trampolines is part of
// attaching alone.
func (m *Machine) Waterfall(c *Counts, attach bool) []Part {
	costs, round := &m.Costs, m.round
	entries := c.Rounds[EntryCall] + c.Rounds[Order] + c.Rounds[OwnEntry]
	images := c.Rounds[Image] + c.Rounds[OldImage]
	made := int64(0)
	if attach {
		made = c.Images
	}
	counts := []int64{c.SiteStores, c.Rounds[Records], entries, made, images, c.Walked, c.Copied, c.Allocations,
		c.Waits}
	ns := []float64{
		float64(c.SiteStores)*costs.Store + float64(c.Functions)*(costs.Verify+costs.Publish),
		float64(c.Rounds[Records]) * round,
		float64(entries)*round + float64(c.Rounds[EntryCall])*costs.Store,
		float64(made) * m.Image,
		float64(images)*round + float64(c.Rounds[OldImage])*costs.Store,
		float64(c.Walked) * m.Walk,
		float64(c.Copied) * m.Entry,
		float64(c.Allocations) * m.Allocate,
		float64(c.Waits) * costs.GracePeriod,
	}
	out := make([]Part, len(PartNames))
	for i, name := range PartNames {
		out[i] = Part{name, counts[i], ns[i]}
	}
	return out
}

// Whole is the sum, in nanoseconds.
func Whole(parts []Part) (ns float64) {
	for _, p := range parts {
		ns += p.NS
	}
	return ns
}
