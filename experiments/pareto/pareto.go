// SPDX-License-Identifier: Apache-2.0

// Package pareto asks which vector of patches to choose: the cheapest that keeps to
// a budget of interrupts on isolated CPUs.
package pareto

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Config says what can be chosen, on which machines, for which budgets: the flags of
// pareto.experiment.
type Config struct {
	modelled.Setting
	Budgets []float64
	Measure string
}

//go:embed pareto.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.One(&c.Measure,
			"measure", mean, "what budgets are about: `mean` over the update, or burst, the most in one millisecond",
			experiments.OneOf([]string{mean, burst})),
	}
}

// The protocols that queue in a vector.
const (
	withInterrupts = "breakpoint"
	withDeferral   = "breakpoint-lazy"
)

// row is a budget on one machine.
type row struct {
	Machine experiments.Machine
	roles   []cpus.Role
	Budget  float64
	measure string
	Choice  *choice // nil: none keeps to it
	Nearest *choice // of those that are cheaper and do not, the one that takes least; nil if there is none
}

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"cpus":                 func(r *row) any { return cpus.FormatRoles(r.roles) },
	"buffer":               func(r *row) any { return r.Choice.slots() },
	"buffer_bytes":         func(r *row) any { return r.Choice.of(r.Choice.BufferBytes) },
	"buffer_pages":         func(r *row) any { return r.Choice.of(r.Choice.BufferPages) },
	"update_range_low_ns":  func(r *row) any { return r.Choice.end(func(s *sim.Ranges) float64 { return s.Update.Low }) },
	"update_range_high_ns": func(r *row) any { return r.Choice.end(func(s *sim.Ranges) float64 { return s.Update.High }) },
	"exposure_ns":          func(r *row) any { return r.Choice.of(int64(r.Choice.Modelled.Exposure)) },
	"exposure_range_low_ns": func(r *row) any {
		return r.Choice.of(r.Choice.end(func(s *sim.Ranges) float64 { return s.Exposure.Low }))
	},
	"exposure_range_high_ns": func(r *row) any {
		return r.Choice.of(r.Choice.end(func(s *sim.Ranges) float64 { return s.Exposure.High }))
	},
	"entry_range_low_ns": func(r *row) any {
		low, _ := r.Choice.entry()
		return low
	},
	"entry_range_high_ns": func(r *row) any {
		_, high := r.Choice.entry()
		return high
	},
	"cheaper_buffer": func(r *row) any { return r.Nearest.slots() },
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Budgets)
	a := &answer{Study: s}
	for _, m := range c.Machines {
		choices, err := c.choices(ctx, s.Lab, m)
		if err != nil { // the cheapest is not known before all are
			return a.findings(), err
		}
		l := &ladder{m, choices}
		a.Done = append(a.Done, l)
		for _, r := range l.rows(c.Budgets) {
			r.measure = c.Measure
			if err := s.Add(r); err != nil {
				return a.findings(), err
			}
		}
	}
	return a.findings(), nil
}

// protocols are what there is to choose from on an instruction set: what it does by
// itself where that queues nothing, and vectors.
func protocols(native *poke.Protocol) []string {
	if native.Batching == poke.Buffered {
		return []string{withInterrupts, withDeferral}
	}
	return []string{poke.Native, withInterrupts, withDeferral}
}

// What a budget is about.
const (
	mean  = "mean"  // over the update; one that is shorter than a millisecond counts as one
	burst = "burst" // the most in one millisecond
)

// choice is one thing to choose, with what came of it.
type choice struct {
	modelled.Update
	taken    float64 // see takes
	standing float64 // what each entry into the kernel takes longer, in nanoseconds
}

// takes is how many interrupts a millisecond take an isolated CPU out of user space,
// of the one that takes most. None does where all rounds leave out CPUs there: those
// that find it in the kernel, where it is for another reason, do not count.
func (c *choice) takes(measure string) float64 {
	switch {
	case c.Lazy > 0 && c.Lazy == c.Rounds:
		return 0
	case measure == burst:
		return float64(c.IsolatedBurst)
	}
	return float64(c.IsolatedMax) / max(float64(c.Modelled.Update)/1e6, 1)
}

// slots is its vector's size; of is something of the vector, where there is one.
func (c *choice) slots() any { return c.of(c.Buffer.String()) }

func (c *choice) of(what any) any {
	if !c.Buffered {
		return results.Empty
	}
	return what
}

// end is an end of a range of the update's.
func (c *choice) end(of func(*sim.Ranges) float64) float64 {
	return math.Round(of(c.Modelled.Ranges()))
}

// entry is how far what each entry takes longer may be off.
func (c *choice) entry() (low, high float64) {
	for _, e := range c.Calibration.Entries {
		if e.Quantity.Name == "deferral_entry" && c.standing > 0 {
			return e.Interval()
		}
	}
	return 0, 0
}

// Taken is what it takes, ExposureMS how long a site holds a breakpoint, in milliseconds.
func (c *choice) Taken() float64      { return c.taken }
func (c *choice) ExposureMS() float64 { return float64(c.Modelled.Exposure) / 1e6 }

// Milliseconds is the update's time with its range, as people read it.
func (c *choice) Milliseconds() string {
	s := c.Modelled.Ranges().Update.Scaled(1e-6)
	return fmt.Sprintf("%.4g (%.3g to %.3g)", s.Likely, s.Low, s.High)
}

// String names it for people.
func (c *choice) String() string {
	switch {
	case !c.Buffered:
		return "native, no vector"
	case c.standing > 0 || c.Protocol == withDeferral:
		return c.Buffer.String() + " with deferral"
	}
	return c.Buffer.String()
}

// compare orders choices by what they cost, cheapest first: what has to be paid
// while nothing is patched, pages of memory, time of the update. Pages and not
// bytes, because a vector that fills one is what Linux has always had, and nobody
// saves half of one for a longer update. Deferral without a cost is dearer than
// none, since it is not there.
func compare(a, b *choice) int {
	lazy := func(c *choice) int {
		if c.Protocol == withDeferral {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.standing, b.standing), cmp.Compare(lazy(a), lazy(b)),
		cmp.Compare(a.BufferPages, b.BufferPages), cmp.Compare(a.Modelled.Update, b.Modelled.Update),
	)
}

// choices goes through all there is to choose on one machine; those that were only
// counted are at the end.
func (s *Config) choices(ctx context.Context, lab experiments.Lab, m experiments.Machine) (out []*choice, err error) {
	c, err := s.Engine(ctx, lab, m)
	if err != nil {
		return nil, err
	}
	if c.Isolated() == 0 {
		return nil, fmt.Errorf("cpus %s: none is isolated: no budget can be exceeded", cpus.FormatRoles(c.Roles))
	}
	var untimed []*choice
	for _, c.Protocol = range protocols(poke.Named(poke.Native, c.Arch.Traits())) {
		buffers := s.Buffers
		if c.Protocol == poke.Native {
			buffers = []sched.Buffer{sched.Dynamic} // of no vector
		}
		for _, c.Buffer = range buffers {
			one, err := s.try(ctx, lab, c)
			if err != nil {
				return nil, err
			}
			if one.Modelled == nil {
				untimed = append(untimed, one)
				continue
			}
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, compare)
	return append(out, untimed...), nil
}

// try runs one of them.
func (s *Config) try(ctx context.Context, lab experiments.Lab, c sim.Config) (*choice, error) {
	one := &choice{}
	var err error
	if one.Update, err = modelled.Enable(ctx, lab, c, s.Limit); err != nil || one.Modelled == nil {
		return one, err
	}
	if one.Violations > 0 {
		return one, errors.New(c.String() + ": properties were violated")
	}
	one.taken = one.takes(s.Measure)
	if one.Lazy > 0 {
		one.standing = c.Calibration.Costs.DeferralEntry
	}
	return one, nil
}

// ladder is the choices of one machine, cheapest first.
type ladder struct {
	Machine experiments.Machine
	All     []*choice
}

// CPUs are the machine's, by role.
func (c *choice) CPUs() string { return cpus.FormatRoles(c.Roles) }

// Untimed are those that were only counted.
func (l *ladder) Untimed() []*choice { return l.All[len(l.Timed()):] }

// Timed are those that can be chosen.
func (l *ladder) Timed() []*choice {
	n := slices.IndexFunc(l.All, func(c *choice) bool { return c.Modelled == nil })
	if n < 0 {
		n = len(l.All)
	}
	return l.All[:n]
}

// rows picks for each budget.
func (l *ladder) rows(budgets []float64) (out []*row) {
	for _, budget := range budgets {
		r := &row{Machine: l.Machine, roles: l.All[0].Roles, Budget: budget}
		for _, c := range l.Timed() {
			if c.taken <= budget {
				r.Choice = c
				break
			}
			if r.Nearest == nil || c.taken < r.Nearest.taken {
				r.Nearest = c
			}
		}
		out = append(out, r)
	}
	return out
}

// thresholds are the choices that some budget makes the cheapest: each takes less
// than all that are cheaper.
func (l *ladder) thresholds() (out []*choice) {
	for _, c := range l.Timed() {
		if len(out) == 0 || c.taken < out[len(out)-1].taken {
			out = append(out, c)
		}
	}
	return out
}
