// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

var long = service.Long

// setup is what a machine is built of.
type setup struct {
	dir, records, cpus string
	buffer             string // "": 4 slots, so that updates have several batches
	seed               uint64
	compact            time.Duration
	keep               int // 0: keepUpdates
	linger             float64
	at                 func(point string)
	fault              func(poke.Step, int32) error
	observer           service.Observer
}

// machine is a service as these tests use it.
type machine struct {
	*service.Service
	store *journal.Store
}

// started starts a machine and sees to it that it ends.
func started(tb testing.TB, s setup) *machine {
	tb.Helper()
	m, err := start(tb.Context(), s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return m
}

func start(ctx context.Context, s setup) (*machine, error) {
	roles, err := cpus.ParseRoles(s.cpus)
	if err != nil {
		return nil, err
	}
	buffer, err := sched.ParseBuffer(cmp.Or(s.buffer, "4"))
	if err != nil {
		return nil, err
	}
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		return nil, err
	}
	table, err := records.Open(ctx, s.records, records.Options{})
	if err != nil {
		return nil, err
	}
	kept, err := journal.Open(ctx, s.dir, service.Identity(table))
	if err != nil {
		return nil, err
	}
	served, err := service.Start(ctx, service.Config{
		Table: table, Store: kept, Machine: service.Simulated(sim.Config{
			Arch: arch, Protocol: "breakpoint", Table: table, Roles: roles, Buffer: buffer, Seed: s.seed + 1,
		}, s.fault),
		Log: zap.NewNop(), Keep: journal.Keep{Updates: cmp.Or(s.keep, keepUpdates)}, Compact: s.compact, At: s.at,
		Observer: s.observer, Linger: s.linger,
	})
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return &machine{served, kept}, nil
}

// request is what a client sends.
func request(client string, records []string, enable bool) service.Request {
	return service.Request{Client: client, Ops: opsNames[0], Enable: enable, Records: records}
}

func (a *asked) request(all []string) service.Request {
	r := service.Request{Client: a.Client, Key: a.Key, Ops: a.Ops, Enable: a.Enable, Records: names(all, a.Set)}
	if a.Expires != 0 {
		r.Deadline = time.Unix(0, a.Expires)
	}
	return r
}

// refusedNow tells whether an update was refused for lack of room or time.
func refusedNow(err error) bool {
	var field *service.FieldError
	return errors.Is(err, service.ErrQueueFull) || errors.Is(err, service.ErrClientQueueFull) || errors.As(err, &field) &&
		field.Field == "deadline"
}

// every is the size of a page that holds all.
const every = 1 << 20

// names lists the records, each by its symbol.
func (m *machine) names() (out []string, err error) {
	all, err := m.Records(context.Background(), service.RecordQuery{After: -1, Limit: every})
	for _, r := range all {
		out = append(out, r.Symbol)
	}
	return out, err
}

// enabled is the records that are enabled, as one look sees them.
func (m *machine) enabled() (set uint64, err error) {
	all, err := m.Records(context.Background(), service.RecordQuery{After: -1, Limit: every})
	for i, r := range all {
		if r.Enabled {
			set |= 1 << i
		}
	}
	return set, err
}

// updates lists all that the service knows.
func (m *machine) updates(ctx context.Context) (out []told, err error) {
	all, err := m.Updates(ctx, service.Query{Limit: every})
	for _, u := range all {
		out = append(out, told{u.ID, u.Client, u.Ops, u.Key, u.Enable, u.Records, string(u.State)})
	}
	return out, err
}

// wrong says what is wrong with the text, while no update runs.
func (m *machine) wrong() string {
	all := m.CheckText()
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d violations, the first: %+v", len(all), all[0])
}

// faults lets one store in 8 fail once it is armed, but for those that take an
// update back. What was live is always made live again.
type faults struct {
	armed atomic.Bool
	rng   *rand.Rand // the patcher's
}

func (f *faults) fail(st poke.Step, _ int32) error {
	if f.armed.Load() && !st.Undo && f.rng.IntN(8) == 0 {
		return poke.ErrInjected
	}
	return nil
}

// unplugger takes CPUs out and puts them back until ctx ends.
func (m *machine) unplugger(ctx context.Context, rng *rand.Rand) error {
	for ctx.Err() == nil {
		cpu := rng.IntN(3)
		if err := m.Plug(ctx, cpu, false); err != nil && !errors.Is(err, cpus.ErrLastOne) && ctx.Err() == nil {
			return err
		} else if err != nil {
			continue
		}
		time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Millisecond))))
		if err := m.Plug(context.WithoutCancel(ctx), cpu, true); err != nil {
			return err
		}
	}
	return nil
}

// rounds is how many rounds of interrupts were sent.
func (m *machine) rounds() uint64 { return m.Stats().Rounds }

// close carries out what waits, and ends.
func (m *machine) close(ctx context.Context) error {
	_, err := m.Drain(ctx)
	return errors.Join(err, m.Close(), m.store.Close())
}

// raced tells whether this is built with the race detector, which takes memory of
// its own.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
