// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"cmp"
	"context"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
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
var Pareto = pareto.Experiment()

var pareto = experiments.Spec[budgets, *budgetRow]{Form: text("pareto.experiment"), Measure: underBudgets}

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
	Middle  bool // of the budgets
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
			for _, one := range choices {
				one.number = len(all)
				all = append(all, one)
			}
			for i, budget := range c.Budgets {
				r := &budgetRow{m, choices[0].CPUs(), budget, c.Measure, i == len(c.Budgets)/2}
				if err := s.Add(r); err != nil {
					return err
				}
			}
		}
		return nil
	}()
	return s, cmp.Or(err, experiments.Beside(s, "choices", all))
}

// burst is the other thing that a budget can be about, beside the mean over the update: the most in one millisecond.
const burst = "burst"

// offer is one thing to choose, with what came of it.
type offer struct {
	modelled.Update
	Machine   experiments.Machine
	number    int     // among all
	end       bool    // it stands for the cheapest one once more, right of all others
	Taken     float64 // see takes
	Standing  float64 // what each entry into the kernel takes longer, in nanoseconds
	Low, High float64 // how far that may be off
}

// takes is how many interrupts a millisecond take an isolated CPU out of user space,
// of the one that takes most. None does where all rounds leave out CPUs there: those
// that find it in the kernel, where it is for another reason, do not count. An update that is
// shorter than a millisecond counts as one.
func (c *offer) takes(measure string) float64 {
	switch {
	case c.Lazy > 0 && c.Lazy == c.Rounds:
		return 0
	case measure == burst:
		return float64(c.IsolatedBurst)
	}
	return float64(c.IsolatedMax) / max(float64(c.Modelled.Update)/1e6, 1)
}

// CPUs are the machine's, by role.
func (c *offer) CPUs() string { return cpus.FormatRoles(c.Roles) }

// choices goes through all there is to choose on one machine.
func (s *budgets) choices(ctx context.Context, lab experiments.Lab, m experiments.Machine) (out []*offer, err error) {
	c, err := m.Job(ctx, lab, cmp.Or(s.Records, records.DefaultFor(m.Arch)))
	if err != nil {
		return nil, err
	}
	c.Lookup, c.Roles, c.Calls = int3.Vector, s.Roles, s.Calls
	if c.Roles == nil {
		c.Roles = m.Shielded()
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
	end := &offer{Machine: m, end: true}
	end.PlanRow = out[0].PlanRow
	return append(out, end), nil
}

// try runs one of them.
func (s *budgets) try(ctx context.Context, lab experiments.Lab, c sim.Config) (*offer, error) {
	one := &offer{}
	var err error
	if one.Update, err = modelled.Enable(ctx, lab, c, s.Limit); err != nil || one.Modelled == nil {
		return one, err
	}
	one.Taken = one.takes(s.Measure)
	if one.Lazy > 0 {
		one.Standing = c.Calibration.Costs.DeferralEntry
		entry := spelling.First(c.Calibration.Entries, func(e calibration.Entry) bool {
			return e.Quantity.Name == "deferral_entry"
		})
		one.Low, one.High = entry.Interval()
	}
	return one, nil
}
