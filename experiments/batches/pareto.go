// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// budgets says what can be chosen, on which machines, for which budgets: the flags of
// pareto.experiment.
type budgets struct {
	Machines []experiments.Machine
	Buffers  []sched.Buffer
	Limit    int         // of interrupts, above which an update is counted and not timed
	Roles    []cpus.Role // nil for those of the machine
	Records  string      // "" for the kernel of the machine's instruction set
	Calls    *float64    // nil for those of the calibration
	Budgets  []float64
	Measure  string
}

// Pareto asks which vector of patches to choose: the cheapest that keeps to a budget of interrupts on isolated CPUs.
var Pareto = (&experiments.Spec[budgets, *budgetRow]{Form: text("pareto.experiment"), Measure: underBudgets}).Experiment()

// The protocols that queue in a vector.
const (
	withInterrupts = "breakpoint"
	withDeferral   = "breakpoint-lazy"
)

// budgetRow is a budget on one machine.
type budgetRow struct {
	Machine experiments.Machine
	CPUs    string // by role
	Budget  float64
	measure string
	Middle  bool   // of the budgets
	Choice  *offer // nil: none keeps to it
	Nearest *offer // of those that are cheaper and do not, the one that takes least; nil if there is none
}

func underBudgets(ctx context.Context, s *experiments.Study[budgets, *budgetRow]) (any, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Budgets)
	var all []*offer
	err := func() error {
		for _, m := range c.Machines {
			choices, err := c.choices(ctx, s.Lab, m)
			if err != nil { // the cheapest is not known before all are
				return err
			}
			all = append(all, choices...)
			for i, r := range rows(choices, c.Budgets) {
				r.measure, r.Middle = c.Measure, i == len(c.Budgets)/2
				if err := s.Add(r); err != nil {
					return err
				}
			}
		}
		return nil
	}()
	return s, cmp.Or(err, experiments.Beside(s, "choices", withEnds(all)))
}

// What a budget is about.
const (
	mean  = "mean"  // over the update; one that is shorter than a millisecond counts as one
	burst = "burst" // the most in one millisecond
)

// offer is one thing to choose, with what came of it.
type offer struct {
	modelled.Update
	Machine   experiments.Machine
	Taken     float64 // see takes
	Standing  float64 // what each entry into the kernel takes longer, in nanoseconds
	Low, High float64 // how far that may be off
	Rank      int     // among those of the machine, the cheapest first
	End       bool    // it is the cheapest one once more, right of all others
}

// takes is how many interrupts a millisecond take an isolated CPU out of user space,
// of the one that takes most. None does where all rounds leave out CPUs there: those
// that find it in the kernel, where it is for another reason, do not count.
func (c *offer) takes(measure string) float64 {
	switch {
	case c.Lazy > 0 && c.Lazy == c.Rounds:
		return 0
	case measure == burst:
		return float64(c.IsolatedBurst)
	}
	return float64(c.IsolatedMax) / max(float64(c.Modelled.Update)/1e6, 1)
}

// Milliseconds is the update's time with its range, as people read it.
func (c *offer) Milliseconds() string {
	s := c.Modelled.Ranges().Update.Scaled(1e-6)
	return fmt.Sprintf("%.4g (%.3g to %.3g)", s.Likely, s.Low, s.High)
}

// Named is the choice with the unit of its size.
func (c *offer) Named() string {
	if !c.Buffered {
		return c.String()
	}
	return c.Buffer.String() + " slots" + strings.TrimPrefix(c.String(), c.Buffer.String())
}

// CPUs are the machine's, by role.
func (c *offer) CPUs() string { return cpus.FormatRoles(c.Roles) }

// String names it for people.
func (c *offer) String() string {
	switch {
	case !c.Buffered:
		return "native, no vector"
	case c.Standing > 0 || c.Protocol == withDeferral:
		return c.Buffer.String() + " with deferral"
	}
	return c.Buffer.String()
}

// compare orders choices by what they cost, cheapest first: what has to be paid
// while nothing is patched, pages of memory, time of the update. Pages and not
// bytes, because a vector that fills one is what Linux has always had, and nobody
// saves half of one for a longer update. Deferral without a cost is dearer than
// none, since it is not there.
func compare(a, b *offer) int {
	lazy := func(c *offer) int {
		if c.Protocol == withDeferral {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.Standing, b.Standing), cmp.Compare(lazy(a), lazy(b)),
		cmp.Compare(a.BufferPages, b.BufferPages), cmp.Compare(a.Modelled.Update, b.Modelled.Update),
	)
}

// choices goes through all there is to choose on one machine.
func (s *budgets) choices(ctx context.Context, lab experiments.Lab, m experiments.Machine) (out []*offer, err error) {
	c := sim.Config{Lookup: int3.Vector, Roles: s.Roles, Seed: lab.Seed, Calibration: m.Calibration, Calls: s.Calls}
	if c.Roles == nil {
		c.Roles = m.Shielded()
	}
	if c.Arch, err = m.ISA(); err != nil {
		return nil, err
	}
	if c.Table, err = records.Open(ctx, cmp.Or(s.Records, records.DefaultFor(m.Arch)), records.Options{}); err != nil {
		return nil, err
	}
	if c.Isolated() == 0 {
		return nil, fmt.Errorf("cpus %s: none is isolated: no budget can be exceeded", cpus.FormatRoles(c.Roles))
	}
	protocols := []string{withInterrupts, withDeferral}
	if poke.Named(poke.Native, c.Arch.Traits()).Batching != poke.Buffered { // it queues nothing by itself
		protocols = append([]string{poke.Native}, protocols...)
	}
	for _, c.Protocol = range protocols {
		buffers := s.Buffers
		if c.Protocol == poke.Native {
			buffers = []sched.Buffer{sched.Dynamic} // of no vector
		}
		for _, c.Buffer = range buffers {
			one, err := s.try(ctx, lab, c)
			if err != nil {
				return nil, err
			}
			one.Machine = m
			out = append(out, one)
		}
	}
	return rank(out), nil
}

// rank orders choices of one machine. Those that were only counted are at the end.
func rank(all []*offer) []*offer {
	out := experiments.Where(all, func(c *offer) bool { return c.Modelled != nil })
	slices.SortStableFunc(out, compare)
	out = append(out, experiments.Where(all, func(c *offer) bool { return c.Modelled == nil })...)
	for i, c := range out {
		c.Rank = i
	}
	return out
}

// try runs one of them.
func (s *budgets) try(ctx context.Context, lab experiments.Lab, c sim.Config) (*offer, error) {
	one := &offer{}
	var err error
	if one.Update, err = modelled.Enable(ctx, lab, c, s.Limit); err != nil || one.Modelled == nil {
		return one, err
	}
	if one.Violations > 0 {
		return one, errors.New(c.String() + ": properties were violated")
	}
	one.Taken = one.takes(s.Measure)
	if one.Lazy > 0 {
		one.Standing = c.Calibration.Costs.DeferralEntry
		entry := experiments.First(c.Calibration.Entries, func(e calibration.Entry) bool { return e.Quantity.Name == "deferral_entry" })
		one.Low, one.High = entry.Interval()
	}
	return one, nil
}

// rows picks for each budget, of the choices of one machine.
func rows(choices []*offer, budgets []float64) (out []*budgetRow) {
	for _, budget := range budgets {
		r := &budgetRow{Machine: choices[0].Machine, CPUs: choices[0].CPUs(), Budget: budget}
		for _, c := range choices {
			if c.Modelled == nil {
				continue
			}
			if c.Taken <= budget {
				r.Choice = c
				break
			}
			if r.Nearest == nil || c.Taken < r.Nearest.Taken {
				r.Nearest = c
			}
		}
		out = append(out, r)
	}
	return out
}

// withEnds adds what the cheapest choice of each machine is right for beyond all others.
func withEnds(all []*offer) (out []*offer) {
	cheapest := experiments.Where(all, func(c *offer) bool { return c.Rank == 0 && c.Modelled != nil })
	most := 1.0
	for _, c := range cheapest {
		most = max(most, c.Taken)
	}
	for _, c := range all {
		out = append(out, c)
		if slices.Contains(cheapest, c) {
			end := *c
			end.Taken, end.End = 1.5*most, true
			out = append(out, &end)
		}
	}
	return out
}
