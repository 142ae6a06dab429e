// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

// ErrStuck is an update that a machine could not carry out and not take back: the service
// switches no record any more.
var ErrStuck = errors.New("the machine is stuck in the middle of an update")

// ErrNoForecast is a machine that cannot tell what an update would cost.
var ErrNoForecast = errors.New("no forecast of this machine's interrupts")

// ErrNoTrace is a machine that has no lines of a trace, or none with some ops.
var ErrNoTrace = errors.New("there is no trace to read")

// Machine is whose text is changed: one that is simulated (Simulated), or this machine's own
// kernel (package service/host). Apply and Restored are called one at a time, all else at
// any time.
type Machine interface {
	// Patchable tells why a record of the table cannot be switched for some ops; nil where it can.
	Patchable(ops string, record int) error
	// Apply brings changes into the text, all or none; see coordinator.Config, and Number. With ErrStuck
	// neither has succeeded. The receipt is nil for a machine that writes none.
	Apply(ctx context.Context, changes []coordinator.Change) (*journal.Receipt, error)
	// Restored is called once, when all records that were live before the start are live again.
	// No client wants any others that the machine holds.
	Restored(ctx context.Context) error
	// Agree is called now and then: where somebody else changed what the machine holds, it is
	// told and put right.
	Agree(ctx context.Context) error
	// Cost counts what switching so many records, by their Number, would take, with a vector in place of the
	// machine's own where one is given.
	Cost(ctx context.Context, records []int, buffer *sched.Buffer) (sim.PlanRow, error)
	// Trace hands on those lines of the trace with some ops that keep keeps, as they come, until ctx ends or tell
	// fails; without lines it is told once that the reading has begun. missed is how many more were kept than the reader took.
	Trace(ctx context.Context, ops string, keep func(*Line) bool, tell func(lines []Line, missed int) error) error
	// CPUs is what each has sent and taken since the machine was built; not their traps and
	// calls, of which Tallies tells, and may wait.
	CPUs() []CPU
	Tallies(ctx context.Context) ([]cpus.Tally, error)
	// Plug brings a CPU in, or takes it out.
	Plug(ctx context.Context, cpu int, in bool) error
	// Interrupts prints the interrupts of the CPUs that are online, laid out as /proc/interrupts.
	Interrupts(w io.Writer) error
	Violations() []cpus.Violation
	// SetPacing says how much CPUs do while no update runs, if the machine can choose.
	SetPacing(g cpus.Pacing)
	Now() int64 // nanoseconds by the machine's clock
	Close()
}

// Maker builds a machine that tells a listener what happens.
type Maker func(l *cpus.Listener, log *zap.Logger) (Machine, error)

// The points at which Config.At is called. A process may end at any of them and
// nothing promised is lost.
const (
	BeforeAccept  = "before accept" // nothing is in the journal
	AfterAccept   = "after accept"  // it is, and its client has no answer yet
	BeforeApply   = "before apply"  // requests are merged
	AfterStep     = "after step "   // followed by the step's name: the text is half changed
	AfterApply    = "after apply"   // the text is changed, the journal does not know
	BeforeAnswer  = "before answer"
	AfterAnswer   = "after answer" // the journal knows, and its client has no answer yet
	DuringLook    = "during look"  // between the looks at what is on its way and at the journal
	BeforeCompact = "before compact"
	DuringCompact = "during compact" // some of it is removed
	AfterCompact  = "after compact"
)

// simulated is sim's live machine.
type simulated struct {
	*sim.Live
	config sim.Config
	fault  func(st poke.Step, patch int32) error
}

// Simulated is a live machine of sim's. All of its CPUs call all functions that c's filter
// chooses. A fault, where there is one, makes stores into the text fail (poke.Executor.Fault),
// but not while the records of before the start are made live again.
func Simulated(c sim.Config, fault func(st poke.Step, patch int32) error) Maker {
	return func(l *cpus.Listener, log *zap.Logger) (Machine, error) {
		c.Listener, c.Log = l, log
		job, err := sim.NewJob(c)
		if err != nil {
			return nil, err
		}
		live, err := sim.NewLive(job)
		if err != nil {
			return nil, err
		}
		live.Attach()
		return &simulated{live, c, fault}, nil
	}
}

var errAlignment = errors.New("its alignment does not allow it")

func (m *simulated) Patchable(_ string, record int) error {
	if m.Live.Patchable(record) {
		return nil
	}
	return errAlignment
}

func (m *simulated) Restored(context.Context) error {
	m.Fault(m.fault)
	return nil
}

// Trace has nothing to tell: calls are counted, and not written down.
func (m *simulated) Trace(context.Context, string, func(*Line) bool, func([]Line, int) error) error {
	return fmt.Errorf("%w: this machine counts calls, and writes none down", ErrNoTrace)
}

// Agree has nothing to do: no other program can reach the text.
func (m *simulated) Agree(context.Context) error { return nil }

func (m *simulated) Apply(ctx context.Context, changes []coordinator.Change) (*journal.Receipt, error) {
	err := m.Live.Apply(ctx, changes)
	if failed, ok := errors.AsType[*poke.Error](err); ok && failed.State == poke.Stuck {
		return nil, fmt.Errorf("%w: %w", ErrStuck, err)
	}
	return nil, err
}

func (m *simulated) Cost(ctx context.Context, records []int, buffer *sched.Buffer) (sim.PlanRow, error) {
	job, err := sim.NewJob(m.config)
	if err != nil {
		return sim.PlanRow{}, err
	}
	if buffer == nil {
		buffer = &m.config.Buffer
	}
	return job.Of(records, *buffer).Count(ctx)
}

func (m *simulated) CPUs() []CPU {
	counts := m.Counts()
	out := make([]CPU, len(m.config.Roles))
	for i := range out {
		out[i] = CPU{ID: i, Role: m.config.Roles[i].String(), Online: m.Online(i), Taken: map[string]uint64{}}
		for k := range cpus.NumCauses {
			out[i].RoundsSent += counts.Rounds[i][k]
			if n := counts.Taken[i][k]; n > 0 {
				out[i].Taken[cpus.Cause(k).String()] = n
			}
		}
	}
	return out
}

func (m *simulated) Plug(ctx context.Context, cpu int, in bool) error {
	if in {
		return m.Live.Plug(ctx, cpu)
	}
	return m.Unplug(ctx, cpu)
}

func (m *simulated) Interrupts(w io.Writer) error { return m.WriteInterrupts(w) }
