// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sched/coordinator"
)

// Live is a job on the live machine: CPUs are goroutines that call the table's
// functions all the time, while a patcher changes them.
type Live struct {
	*cpus.Machine
	patcher *poke.Executor
	updater
}

// NewLive builds the machine and starts its CPUs. Close must follow.
func NewLive(j *Job) (*Live, error) {
	s, err := j.sites()
	if err != nil {
		return nil, err
	}
	tracing, err := newTracing(j, &s.code)
	if err != nil {
		return nil, err
	}
	table := int3.NewTable(j.Refs, len(j.Roles))
	m, err := cpus.NewMachine(cpus.Config{
		Code: &s.code, Roles: j.Roles, Handler: table, NopOps: nopOps, Seed: j.Seed,
		Initial:  func(site int) isa.Text { return s.enable[site].Old },
		Listener: listen(j),
	})
	if err != nil {
		return nil, err
	}
	l := &Live{Machine: m, updater: newUpdater(j, m, s, tracing)}
	if err := m.AddOps(l.ops); err != nil {
		return nil, err
	}
	l.patcher = poke.NewExecutor(m, table, j.Lookup, cpus.NewRandom(j.Seed, 0), 0)
	l.patcher.Home = cpus.Housekeeper(j.Roles)
	l.patcher.Migrate = j.Migrate
	l.patcher.Filling = j.mutation.Filling
	l.patcher.Shared.Slots = j.slots()
	m.Start()
	return l, nil
}

// Close ends the CPUs' goroutines. No update may be running.
func (l *Live) Close() { l.Machine.Stop() }

// Update enables or disables everything that the job is about, with one update,
// and tells what it did. An update that failed and left every site whole is an
// error, violations are not.
func (l *Live) Update(ctx context.Context, enable bool) (RunRow, error) {
	return l.update(ctx, "live", enable, func(u *poke.Update, row *RunRow) error {
		before, err := l.read(ctx)
		if err != nil {
			return err
		}
		l.Machine.Ledger.ForgetBursts()
		start := time.Now()
		if err := l.patcher.Run(ctx, u); err != nil {
			return err
		}
		row.Elapsed = time.Since(start)
		if !enable && l.job.shape.Frees() { // no site is for the tracer any more
			l.Machine.SetOps(l.ops, cpus.CalledFreed)
		}
		return l.finish(ctx, row, before)
	})
}

// reading is the state of all counters at one time.
type reading struct {
	counts     cpus.Counts
	tallies    []cpus.Tally
	dispatched DispatchCounts
}

func (l *Live) read(ctx context.Context) (reading, error) {
	r := reading{counts: l.Machine.Ledger.Read(), tallies: make([]cpus.Tally, len(l.job.Roles))}
	err := l.Machine.Visit(ctx, func(cpu int, t cpus.Tally) {
		r.tallies[cpu] = t
		r.dispatched = r.dispatched.add(l.tracing.of(cpu), 1)
	})
	return r, err
}

// aftermath is how often every CPU is let run for a quantum after an update, so
// that it can break what the update promised.
const aftermath = 8

// finish reads the counters again once the CPUs have gone on for a while.
func (l *Live) finish(ctx context.Context, row *RunRow, before reading) error {
	defer l.Machine.SetInFlight(nil)
	var after reading
	for range aftermath {
		var err error
		if after, err = l.read(ctx); err != nil {
			return err
		}
	}
	row.Counts = after.counts.Since(before.counts)
	row.Tallies = after.tallies
	for cpu := range row.Tallies {
		row.Tallies[cpu] = row.Tallies[cpu].Sub(before.tallies[cpu])
	}
	if l.tracing != nil {
		d := after.dispatched.add(before.dispatched, -1)
		row.Dispatched = &d
	}
	return nil
}

// Violations are the first of those since the machine was built.
func (l *Live) Violations() []cpus.Violation { return l.updater.Violations() }

// Counts reads the ledger: interrupts by CPU and cause since the machine was
// built.
func (l *Live) Counts() cpus.Counts { return l.Machine.Ledger.Read() }

// Stopped tells whether an error means that the caller's context ended the run,
// and not that something is wrong.
func Stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Move is where a patcher goes on once that many rounds of its update have been
// answered.
type Move struct{ After, To int }

// Itinerary lets the next update begin on a CPU and go on on others at given rounds,
// in place of wherever it likes. It fails where a CPU runs no patcher.
func (l *Live) Itinerary(home int, moves ...Move) error {
	for _, cpu := range append([]Move{{To: home}}, moves...) {
		if cpu.To < 0 || cpu.To >= len(l.job.Roles) || !l.job.Roles[cpu.To].RunsPatcher() {
			return fmt.Errorf("cpu %d of %s runs no patcher", cpu.To, cpus.FormatRoles(l.job.Roles))
		}
	}
	start := l.Machine.Ledger.Read().TotalRounds(cpus.Sync)
	l.patcher.Home, l.patcher.Migrate = home, true
	l.patcher.Chooser = &itinerary{
		Chooser: cpus.NewRandom(l.job.Seed, 0), at: home, moves: moves,
		rounds: func() int { return int(l.Machine.Ledger.Read().TotalRounds(cpus.Sync) - start) },
	}
	return nil
}

// itinerary answers a patcher that asks whether to move.
type itinerary struct {
	cpus.Chooser
	at     int
	moves  []Move
	rounds func() int // answered so far
}

// Choose answers moves by the itinerary, and everything else by the chooser behind it.
func (c *itinerary) Choose(what cpus.Choice, n int) int {
	if what != cpus.ChooseMove {
		return c.Chooser.Choose(what, n)
	}
	if len(c.moves) == 0 || c.rounds() < c.moves[0].After {
		return 0 // stays
	}
	from, to := c.at, c.moves[0].To
	c.at, c.moves = to, c.moves[1:]
	switch to {
	case from:
		return 0
	case 0: // a patcher that is told its own CPU goes to CPU 0
		return from
	}
	return to
}

// Attach lets the one tracer be called from now on, whichever sites Apply enables.
func (l *Live) Attach() { l.Machine.SetOps(l.ops, cpus.CalledTracer) }

// Patchable tells whether the architecture lets a record be patched.
func (l *Live) Patchable(record int) bool { return l.sites.site[record] >= 0 }

// Fault makes stores of the following updates fail as f says; nil for none. No
// update may be running.
func (l *Live) Fault(f func(st poke.Step, patch int32) error) { l.patcher.Fault = f }

// Apply carries changes out with one update, all or none, and looks afterwards
// whether every site is as it should be; it is a sched.Apply. One call at a time.
func (l *Live) Apply(ctx context.Context, changes []coordinator.Change) error {
	patches := spelling.Each(changes, func(c coordinator.Change) poke.Patch {
		return l.sites.patch(c.Record, c.Enable)
	})
	u, err := l.job.update(patches, false)
	if err != nil {
		return err
	}
	err = l.patcher.Run(ctx, u)
	if failed, ok := errors.AsType[*poke.Error](err); ok && failed.State == poke.AllOld {
		for i := range patches {
			patches[i].New, patches[i].NewOps = patches[i].Old, patches[i].OldOps
		}
	}
	l.checkSites(patches)
	return err
}

// CheckAll holds every site of the table against what live says of its record.
// No update may be running. Violations has its findings.
func (l *Live) CheckAll(live func(record int) bool) {
	l.checkSites(spelling.Each(l.sites.records, func(rec int) poke.Patch { return l.sites.patch(rec, live(rec)) }))
}

// WriteInterrupts prints the interrupts since the machine was built of the CPUs
// that are online, laid out as /proc/interrupts.
func (l *Live) WriteInterrupts(w io.Writer) error {
	present := l.job.Config
	present.Roles = make([]cpus.Role, l.Machine.CPUs())
	for cpu := range present.Roles {
		if present.Roles[cpu] = l.Machine.Role(cpu); !l.Machine.Online(cpu) {
			present.Roles[cpu] = cpus.Offline
		} else if present.Roles[cpu] == cpus.Offline { // was plugged in
			present.Roles[cpu] = cpus.Busy
		}
	}
	return interrupts.Write(w, snapshot(RunRow{PlanRow: PlanRow{Config: &present}}, l.Counts()))
}
