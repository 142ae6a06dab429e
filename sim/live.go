// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// Live is a job on the live machine: CPUs are goroutines that call the table's
// functions all the time, while a patcher changes them.
type Live struct {
	machine *cpus.Machine
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
	l := &Live{machine: m, updater: newUpdater(j, m, s, tracing)}
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
func (l *Live) Close() { l.machine.Stop() }

// Update enables or disables everything that the job is about, with one update,
// and tells what it did. An update that failed and left every site whole is an
// error, violations are not.
func (l *Live) Update(ctx context.Context, enable bool) (RunRow, error) {
	return l.update(ctx, "live", enable, func(u *poke.Update, row *RunRow) error {
		before, err := l.read(ctx)
		if err != nil {
			return err
		}
		l.machine.Ledger.ForgetBursts()
		start := time.Now()
		if err := l.patcher.Run(ctx, u); err != nil {
			return err
		}
		row.Elapsed = time.Since(start)
		if !enable && l.job.shape.Frees() { // nobody wants the tracer any more
			l.machine.SetOps(l.ops, cpus.CalledFreed)
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
	r := reading{counts: l.machine.Ledger.Read(), tallies: make([]cpus.Tally, len(l.job.Roles))}
	err := l.machine.Visit(ctx, func(cpu int, t cpus.Tally) {
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
	defer l.machine.SetInFlight(nil)
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

// Counts reads the ledger: interrupts by CPU and cause since the machine was
// built.
func (l *Live) Counts() cpus.Counts { return l.machine.Ledger.Read() }

// Stopped tells whether an error means that the caller's context ended the run,
// and not that something is wrong.
func Stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
