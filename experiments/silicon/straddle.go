// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// straddleConfig says which plans are tried, and how often.
// Its fields are the flags of straddle.experiment.
type straddleConfig struct {
	Mutations []string // with sound for none
	Updates   int      // of each
	Width     float64  // of an interval
	Sites     int      // of an update
}

// Straddle asks which defects of a protocol this machine's own CPUs show, by where
// in a cache line and a page a site lies.
var Straddle = (&experiments.Spec[straddleConfig, straddleRow]{
	Form: text("straddle.experiment"), Fields: (*straddleConfig).fields, Measure: measurePlaces,
}).Experiment()

// sound stands for no defect: the control.
const sound = "none"

func (c *straddleConfig) fields() []*choice.Field {
	return []*choice.Field{
		choice.List(&c.Mutations, "mutate",
			sound+",no-breakpoint,drop-sync-1,drop-sync-2,drop-sync-3-no-recheck,late-publish,early-release",
			"`list` of defects, "+sound+" for the plan as it is", choice.OneOf(append(poke.MutationNames(), sound))),
	}
}

// place is where a site lies.
type place struct {
	name   string
	offset records.Addr // in its page
}

// places are all that a site of five bytes can straddle. Offsets inside a line are those of
// its second sixteen bytes.
func places() []place {
	list := []place{
		{"inside eight aligned bytes", 16}, {"across eight bytes", 21}, {"across sixteen bytes", 29},
	}
	for k := records.Addr(1); k < 5; k++ {
		list = append(list, place{fmt.Sprintf("across a line, %d before", k), 128 - k})
	}
	for k := records.Addr(1); k < 5; k++ {
		list = append(list, place{fmt.Sprintf("across a page, %d before", k), 4096 - k})
	}
	return list
}

// row is a defect at a place.
type straddleRow struct {
	place
	Mutation   string
	Met        share // updates in which something was found
	changes    int   // of sites
	Traps      uint64
	Properties []cpus.Property
}

// Property is the first one that was violated; "" where none was.
func (r straddleRow) Property() string {
	if len(r.Properties) == 0 {
		return ""
	}
	return string(r.Properties[0])
}

type point struct {
	mutation string
	place
}

func measurePlaces(ctx context.Context, s *experiments.Study[straddleConfig, straddleRow]) (any, error) {
	var points []point
	for _, m := range s.Config.Mutations {
		for _, p := range places() {
			points = append(points, point{m, p})
		}
	}
	m := &machine{}
	defer m.close()
	err := experiments.Each(ctx, s, points, func(p point) (straddleRow, error) { return m.try(ctx, s, p) })
	return s, cmp.Or(err, experiments.Beside(s, "defects", defects(s.Rows)))
}

// try tries one point.
func (m *machine) try(ctx context.Context, s *experiments.Study[straddleConfig, straddleRow], p point) (straddleRow, error) {
	const base = 0xffffffff81000000
	var raw []records.Raw
	for i := range s.Config.Sites {
		raw = append(raw, records.Raw{Addr: base + records.Addr(i)*8192 + p.offset, Symbol: fmt.Sprintf("f%d", i)})
	}
	table, err := records.New("straddle", live.Arch.Traits().Name, raw)
	if err != nil {
		return straddleRow{}, err
	}
	c := config(s.Lab, table, sched.Dynamic)
	if p.mutation != sound {
		c.Mutation = p.mutation
	}
	r := straddleRow{place: p.place, Mutation: p.mutation}
	err = m.flip(ctx, c, s.Config.Updates, func(u *sim.RunRow, found []cpus.Violation) {
		r.Met.N++
		r.changes += u.Patches
		r.Traps += u.Traps
		if u.Violations > 0 {
			r.Met.K++
		}
		for _, v := range found {
			if !slices.Contains(r.Properties, v.Property) {
				r.Properties = append(r.Properties, v.Property)
			}
		}
	}, func() bool { return r.Met.High()-r.Met.Low() <= s.Config.Width })
	return r, err
}

// defect is a defect in all places.
type defect struct {
	Mutation, Where, Properties string
	Met                         share
}

// defects are the defects, each over all places.
func defects(rows []straddleRow) (list []defect) {
	for _, m := range spelling.Distinct(rows, func(r straddleRow) string { return r.Mutation }) {
		d := defect{Mutation: m}
		var properties []cpus.Property
		for _, r := range spelling.Where(rows, func(r straddleRow) bool { return r.Mutation == m }) {
			d.Met.K, d.Met.N = d.Met.K+r.Met.K, d.Met.N+r.Met.N
			if r.Met.K > 0 {
				d.Where += fmt.Sprintf("%s (%d of %d); ", r.name, r.Met.K, r.Met.N)
			}
			for _, p := range r.Properties {
				if !slices.Contains(properties, p) {
					properties = append(properties, p)
					d.Properties += string(p) + " "
				}
			}
		}
		list = append(list, d)
	}
	return list
}
