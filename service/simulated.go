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

// simulated is sim's live machine.
type simulated struct {
	*sim.Live
	config sim.Config
	fault  func(st poke.Step, patch int32) error
}

// Simulated is a live machine of sim's, all CPUs of which call all functions that c's filter
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
	var failed *poke.Error
	if errors.As(err, &failed) && failed.State == poke.Stuck {
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
func (m *simulated) Violations() []cpus.Violation { return m.Live.Violations() }
