// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sim/hardware"
)

// Hardware is a job on the CPUs of this machine.
type Hardware struct {
	cfg     hardware.Config
	machine executing
	found   cpus.Reports
	updater
}

// executing is a machine, here or in a process of its own.
type executing interface {
	Update(ctx context.Context, u *poke.Update) (hardware.Outcome, error)
	Peek(site int) isa.Text
	Fault(f func(st poke.Step, patch int32) error)
	Close() error
}

// NewHardware lays the table out in executable memory and starts the threads. Close must
// follow; there can be one in a process at a time.
func NewHardware(j *Job) (*Hardware, error) { return (*Hardware)(nil).Next(j) }

// Next is NewHardware after another one, which it closes, and whose process it goes on in if both are in one of their
// own. Nil is none.
func (h *Hardware) Next(j *Job) (*Hardware, error) {
	s, err := j.sites()
	if err != nil {
		return nil, err
	}
	if err := hardware.Expressible(s.code.Path); err != nil {
		return nil, fmt.Errorf("protocol %s on the hardware engine: %w", j.Protocol, err)
	}
	cfg := hardware.Config{
		Code: &s.code, Initial: s.initial, Roles: j.Roles, Filling: j.mutation.Filling, Seed: j.Seed, Broken: j.suspect(),
		Borderless: j.Borderless, Even: j.Even, Slots: j.slots(),
	}
	next := &Hardware{cfg: cfg}
	if next.machine, err = h.executing(cfg, cfg.Broken && !j.InProcess); err != nil {
		return nil, err
	}
	next.updater = newUpdater(j, seen{next}, s, nil)
	return next, nil
}

// executing makes a machine in place of the one that there is, in a process of its own if apart.
func (h *Hardware) executing(cfg hardware.Config, apart bool) (executing, error) {
	if h != nil {
		if c, is := h.machine.(*hardware.Child); is && apart && c.Renew(cfg) == nil {
			return c, nil
		}
		h.Close()
	}
	if apart {
		return hardware.NewChild(cfg)
	}
	return hardware.New(cfg)
}

// suspect tells whether the job's plans may lead CPUs astray: plans with a defect, and plans
// without a proof.
func (j *Job) suspect() bool {
	return j.Mutation != "" || j.Config.Plan != nil || j.torn > 0 && j.protocol.OneStore
}

// again makes another machine in place of one that an update has not survived, as that
// was to leave it.
func (h *Hardware) again(patches []poke.Patch) (err error) {
	initial, left := h.cfg.Initial, make(map[int]isa.Text, len(patches))
	for i := range patches {
		left[int(patches[i].Site)] = patches[i].New
	}
	h.cfg.Initial = func(site int) isa.Text {
		if text, changed := left[site]; changed {
			return text
		}
		return initial(site)
	}
	h.machine, err = h.executing(h.cfg, true)
	return err
}

// seen is the machine as the audit sees it. It may be another machine after each update.
type seen struct{ h *Hardware }

func (s seen) Peek(site int) isa.Text                         { return s.h.machine.Peek(site) }
func (s seen) Report(v cpus.Violation)                        { s.h.found.Report(v) }
func (s seen) Violations() (total uint64, l []cpus.Violation) { return s.h.found.Violations() }

// Literal is 0: sites of this instruction set have none. Nor is there an ops to be set.
func (seen) Literal(int) uint64          { return 0 }
func (seen) SetOps(uint64, cpus.Outcome) {}

// Fault makes stores of the following updates fail as f says; nil for none. No update may
// be running.
func (h *Hardware) Fault(f func(st poke.Step, patch int32) error) { h.machine.Fault(f) }

// Close implements Engine. Twice is as good as once.
func (h *Hardware) Close() {
	if err := h.machine.Close(); err != nil {
		h.job.Log.Warn("the breakpoint handler is still there", zap.Error(err))
	}
}

// Update implements Engine.
func (h *Hardware) Update(ctx context.Context, enable bool) (RunRow, error) {
	return h.update(ctx, "hardware", enable, func(u *poke.Update, row *RunRow) error {
		if err := hardware.Lazy(u.Plan); err != nil {
			return fmt.Errorf("protocol %s on the hardware engine: %w", h.job.Protocol, err)
		}
		before, readable := callInterrupts()
		out, err := h.machine.Update(ctx, u)
		if err != nil {
			return err
		}
		row.Counts, row.Tallies, row.Elapsed = out.Counts, out.Tallies, out.Elapsed
		for _, v := range out.Findings {
			h.found.Report(v)
		}
		row.Violations = out.Total - uint64(len(out.Findings)) // those that were not kept
		if out.Died {
			return cmp.Or(h.again(u.Patches), errDied)
		}
		row.Executed = executed(&out)
		if now, ok := callInterrupts(); ok && readable {
			row.Executed.Seen, row.Executed.HasSeen = now-before, true
		}
		h.checkStores(u, out.Stores)
		return nil
	})
}

// Soak enables and disables all records on the CPUs of this machine, in turns, until ctx ends or d is over. The row is of
// all updates that came to their end; violations are in it.
func Soak(ctx context.Context, c Config, d time.Duration) (RunRow, []cpus.Violation, error) {
	j, err := NewJob(c)
	if err != nil {
		return RunRow{}, nil, err
	}
	h, err := NewHardware(j)
	if err != nil {
		return RunRow{}, nil, err
	}
	defer h.Close()
	all := RunRow{PlanRow: j.planRow(), Engine: "hardware", Revision: j.Revision, Direction: "mixed", Stress: &StressCounts{},
		Tallies: make([]cpus.Tally, len(j.Roles))}
	for start := time.Now(); time.Since(start) < d; {
		row, err := h.Update(ctx, all.Stress.Updates%2 == 0)
		if Stopped(err) {
			break
		}
		if err != nil {
			return all, h.Violations(), err
		}
		for cpu, t := range row.Tallies {
			all.Tallies[cpu] = all.Tallies[cpu].Add(t)
		}
		all.Elapsed, all.Violations = all.Elapsed+row.Elapsed, all.Violations+row.Violations
		all.Stress.Requests, all.Stress.Updates = all.Stress.Requests+1, all.Stress.Updates+1
	}
	all.Counts = h.Counts()
	all.counted()
	all.sum(j.Roles)
	return all, h.Violations(), nil
}

// checkStores holds the stores that were made against those of the plan.
func (a audit) checkStores(u *poke.Update, stores int) {
	var planned poke.Count
	for _, st := range u.Plan {
		planned.Add(st)
	}
	if stores != planned.Writes {
		a.unconserved("%d stores were made, the plan has %d", stores, planned.Writes)
	}
}

// callInterrupts is how many function-call interrupts this machine has counted so far.
func callInterrupts() (sum int64, ok bool) {
	s, err := interrupts.Read(interrupts.ProcFile)
	if err != nil {
		return 0, false
	}
	i := slices.IndexFunc(s.Rows, func(r interrupts.Row) bool { return r.Name == "CAL" })
	if i < 0 {
		return 0, false
	}
	return spelling.Sum(s.Rows[i].Counts), true
}

// Executed is what only the hardware engine can tell of an update.
type Executed struct {
	Stores              int // to text
	Answers             uint64
	Compared            uint64 // comparisons of all look-ups
	RoundMedian         time.Duration
	RoundMax, RoundsAll time.Duration
	Waited              *time.Duration // of the patcher for its CPU, while others had it; nil where it is not known
	Seen                int64          // function-call interrupts that /proc/interrupts has counted on all CPUs meanwhile
	HasSeen             bool
	Pace                time.Duration // of a thousand calls of one undisturbed CPU
	Stolen              float64       // mean time that calls lost of each CPU that went on calling, in nanoseconds
}

// executed sums up what an update did.
func executed(out *hardware.Outcome) *Executed {
	e := &Executed{Stores: out.Stores, Answers: out.Counts.TotalTaken(cpus.Sync), Compared: out.Compared,
		Waited: out.Waited, Pace: out.Pace}
	if n := len(out.Took); n > 0 {
		sorted := slices.Sorted(slices.Values(out.Took))
		e.RoundMedian, e.RoundMax = sorted[n/2], sorted[n-1]
		e.RoundsAll = spelling.Sum(sorted)
	}
	if out.Callers > 0 {
		spent := float64(out.Called) * float64(out.Pace) / 1000
		e.Stolen = float64(out.Elapsed) - spent/float64(out.Callers)
	}
	return e
}

// executedColumns are what the hardware engine adds.
var executedColumns = results.Of(results.Declare[*Executed](declared, "executed", nil), func(r *RunRow) *Executed { return r.Executed })

// completeHardware settles what the hardware engine leaves no choice about.
func (c *Config) completeHardware() error {
	if arch := live.Arch.Traits().Name; c.Arch.Traits().Name != arch {
		return fmt.Errorf("%s on the hardware engine: it executes %s", c.Arch.Traits().Name, arch)
	}
	allowed, err := hardware.Allowed()
	if err != nil {
		return err
	}
	if c.Roles == nil {
		c.Roles = make([]cpus.Role, max(allowed, 1))
	}
	c.Lookup = int3.Vector // as the kernel's own handler
	if c.Tracers != nil || c.Scenario != nil || c.Migrate || c.Preempt || c.Calibration != nil || c.Timeline != nil {
		return fmt.Errorf("the hardware engine has one tracer and one patcher that stays where it is, no scenario, no " +
			"calibration and no timeline")
	}
	if err := hardware.Fits(c.Roles, allowed); err != nil {
		return choice.Errorf("%s %s: the hardware engine: %w", choice.Name("cpus"), cpus.FormatRoles(c.Roles), err)
	}
	return nil
}
