// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// Extra holds times of attaching, in nanoseconds, that calibrations do not have. No published
// measurement of any is known: they are assumed orders of magnitude.
type Extra struct {
	Walk     float64 // one record looked at, with a lookup that mostly finds nothing
	Entry    float64 // one entry put into a hash
	Allocate float64 // one allocation
	Image    float64 // one trampoline generated and copied to where it runs
}

// AssumedExtra are orders of magnitude: a quarter of a cache line of 64 bytes that
// comes in order with one comparison or two; a store to a line of another bucket;
// a kmalloc; some tens of instructions emitted and a page filled.
var AssumedExtra = Extra{Walk: 2, Entry: 15, Allocate: 30, Image: 20_000}

// intervals are where each of these lies, with the reason.
var intervals = []struct {
	of        func(*Extra) *float64
	name, doc string
	low, high float64
	why       string
}{
	{func(x *Extra) *float64 { return &x.Walk }, "walk", "a record looked at", 0.5, 20,
		"records come in order and ahead of time; or each with a miss and a hash that is long"},
	{func(x *Extra) *float64 { return &x.Entry }, "entry", "an entry put into a hash", 3, 100,
		"its bucket is here; or it and the entry are in memory"},
	{func(x *Extra) *float64 { return &x.Allocate }, "allocate", "an allocation", 10, 300,
		"from the CPU's own list; or from a page that is cleared first"},
	{func(x *Extra) *float64 { return &x.Image }, "image", "a trampoline generated and copied", 5e3, 200e3,
		"a few instructions; or with a page that is mapped and made executable by itself"},
}

// entries are these as entries of a calibration have it.
func (x Extra) entries() (out []calibration.Entry) {
	for _, i := range intervals {
		out = append(out, calibration.Entry{
			Quantity: &calibration.Quantity{Name: i.name, Unit: calibration.Time, Doc: i.doc},
			Value:    *i.of(&x), Low: min(i.low, *i.of(&x)), High: max(i.high, *i.of(&x)),
			Basis: calibration.Assumed, Source: i.why,
		})
	}
	return out
}

// Machine is what times are modelled for.
type Machine struct {
	*calibration.Calibration
	Extra
	round float64 // to all other CPUs

	rounds map[calibration.Costs]float64 // of drawn costs: the same ones are drawn for all counts
}

// NewMachine is a machine with a calibration's costs.
func NewMachine(c *calibration.Calibration, x Extra) *Machine {
	return &Machine{c, x, c.Costs.Round(c.CPUs - 1), map[calibration.Costs]float64{}}
}

// Part is one step of the way to the whole time.
type Part struct {
	Name  string
	Count int
	NS    float64 // modelled, of all of them together
}

// PartNames are the parts that Waterfall has, in its order.
var PartNames = []string{"stores to sites", "rounds for sites", "entry calls", "trampolines made",
	"trampoline rounds", "records walked", "hash entries", "allocations", "grace periods", "other rounds"}

// Waterfall is how the time of counts is made up. Making trampolines is part of
// attaching alone.
func (m *Machine) Waterfall(t *Tally, attach bool) []Part {
	costs, round := &m.Costs, m.round
	entries := t.Rounds[ForEntries] + t.Rounds[ForOrder] + t.Rounds[ForOwn]
	images, others := t.Rounds[ForImages]+t.Rounds[ForSkips], t.Rounds[ForWakeups]+t.Rounds[ForOthers]
	made := 0
	if attach {
		made = t.Images
	}
	counts := []int{t.SiteStores, t.Rounds[ForRecords], entries, made, images, t.Walked, t.Copied, t.Allocations,
		t.Waits, others}
	ns := []float64{
		float64(t.SiteStores)*costs.Store + float64(t.Functions)*(costs.Verify+costs.Publish),
		float64(t.Rounds[ForRecords]) * round,
		float64(entries)*round + float64(t.Rounds[ForEntries])*costs.Store,
		float64(made) * m.Image,
		float64(images)*round + float64(t.Rounds[ForSkips])*costs.Store,
		float64(t.Walked) * m.Walk,
		float64(t.Copied) * m.Entry,
		float64(t.Allocations) * m.Allocate,
		float64(t.Waits) * costs.GracePeriod,
		float64(others) * round,
	}
	out := make([]Part, len(PartNames))
	for i, name := range PartNames {
		out[i] = Part{name, counts[i], ns[i]}
	}
	return out
}

// Spread is how far the time of counts may be off, over the intervals of the calibration's
// quantities and of the extra assumptions. Call it from one goroutine at a time.
func (m *Machine) Spread(t *Tally, attach bool, seed uint64) calibration.Spread {
	entries := slices.Concat(m.Entries, m.Extra.entries())
	return calibration.Spreads(entries, seed, calibration.Samples, 1, func(values, out []float64) {
		k, x := *m.Calibration, m.Extra
		for i, e := range m.Entries {
			*e.Quantity.Of(&k.Costs) = values[i]
		}
		for i, v := range values[len(m.Entries):] {
			*intervals[i].of(&x) = v
		}
		out[0] = Whole((&Machine{Calibration: &k, Extra: x, round: m.drawn(&k.Costs)}).Waterfall(t, attach))
	})[0]
}

// drawn is a round on costs that were drawn, worked out once.
func (m *Machine) drawn(c *calibration.Costs) float64 {
	round, ok := m.rounds[*c]
	if !ok {
		round = c.Round(m.CPUs - 1)
		m.rounds[*c] = round
	}
	return round
}

// Whole is the sum, in nanoseconds.
func Whole(parts []Part) float64 {
	return spelling.Sum(spelling.Each(parts, func(p Part) float64 { return p.NS }))
}
