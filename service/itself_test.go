// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
)

// stub is a machine that writes receipts, counts how often it is asked to agree, and lets some records not be patched.
type stub struct {
	Machine
	receipt func() (*journal.Receipt, error)
	agreed  *atomic.Int64
	never   int
}

func (s stub) Apply(ctx context.Context, changes []coordinator.Change) (*journal.Receipt, error) {
	if _, err := s.Machine.Apply(ctx, changes); err != nil || s.receipt == nil {
		return nil, err
	}
	return s.receipt()
}

func (s stub) Agree(ctx context.Context) error {
	s.agreed.Add(1)
	return s.Machine.Agree(ctx)
}

func (s stub) Patchable(ops string, record int) error {
	if record == s.never {
		return errAlignment
	}
	return s.Machine.Patchable(ops, record)
}

// startOn starts a service on the world's machine as a stub changes it. Changes of the service's
// configuration is changed last.
func (w *world) startOn(t *testing.T, as stub, change func(*Config)) (*Service, func(), error) {
	t.Helper()
	st, err := journal.Open(t.Context(), w.dir, Identity(w.Sim.Table))
	if err != nil {
		t.Fatal(err)
	}
	c := w.with(st)
	machine := c.Machine
	c.Machine = func(l *cpus.Listener, log *zap.Logger) (Machine, error) {
		m, err := machine(l, log)
		as.Machine = m
		return as, err
	}
	if as.agreed == nil {
		as.agreed = new(atomic.Int64)
	}
	if change != nil {
		change(&c)
	}
	s, err := Start(t.Context(), c)
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	return s, func() {
		if err := errors.Join(s.Close(), st.Close()); err != nil && !errors.Is(err, journal.ErrBroken) {
			t.Error(err)
		}
	}, nil
}

// TestByItself: as time goes on the journal is compacted and looked at, leases end unless their client attends, and the
// machine is asked to agree.
func TestByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var agreed, compacted atomic.Int64
		w.Compact, w.Look = time.Minute, 2*time.Minute
		w.At = func(point string) {
			if point == BeforeCompact {
				compacted.Add(1)
			}
		}
		s, end, err := w.startOn(t, stub{agreed: &agreed, never: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, client := range []string{"leaves", "attends"} {
			r := enable(client, "fn1")
			r.Lease = 10
			do(t, s, r)
		}
		ctx, leave := context.WithCancel(t.Context())
		go s.Attend(ctx, "attends")
		later := func(by time.Duration, left, attended, times int) {
			t.Helper()
			time.Sleep(by)
			synctest.Wait()
			leaves, _ := s.Client("leaves")
			attends, _ := s.Client("attends")
			if len(leaves) != left || len(attends) != attended || compacted.Load() != int64(times) {
				t.Errorf("left %v, attended %v, compacted %d times", leaves, attends, compacted.Load())
			}
		}
		later(9500*time.Millisecond, 1, 1, 0)
		later(2*time.Second, 0, 1, 0)
		later(60*time.Second, 0, 1, 1) // 71.5 s
		leave()
		later(12*time.Second, 0, 0, 1)
		if n := agreed.Load(); n < 82 || n > 84 {
			t.Errorf("asked to agree %d times in 83 seconds", n)
		}
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		later(36*time.Second, 0, 0, 1) // 119.5 s
		if s.brokenDown() != nil {
			t.Errorf("looked at too early: %v", s.brokenDown())
		}
		time.Sleep(time.Second)
		<-s.Failed()
		end()
	})
}

// TestDefaults: what a service takes for what it was not told.
func TestDefaults(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ given, want Config }{
		{Config{}, Config{Queue: 1024, PerClient: 256, Clients: 100_000, Linger: linger}},
		{Config{Queue: 3, Linger: -1}, Config{Queue: 3, PerClient: 1, Clients: 100_000, Linger: -1}},
		{Config{Queue: 80, PerClient: 7, Clients: 9, Linger: 2}, Config{Queue: 80, PerClient: 7, Clients: 9, Linger: 2}},
	} {
		w.Queue, w.PerClient, w.Clients, w.Linger = c.given.Queue, c.given.PerClient, c.given.Clients, c.given.Linger
		s, kill := w.start(t)
		got := Config{Queue: s.cfg.Queue, PerClient: s.cfg.PerClient, Clients: s.cfg.Clients, Linger: s.cfg.Linger}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		if at := s.cfg.Steady(); at < 0 || at > time.Hour || s.cfg.Retry() == nil {
			t.Errorf("the steady clock shows %v", at)
		}
		for _, cpu := range s.live.CPUs() {
			if slices.Contains(slices.Collect(maps.Values(cpu.Taken)), 0) {
				t.Errorf("CPU %d has causes without any: %v", cpu.ID, cpu.Taken)
			}
		}
		kill()
	}
}

// TestNotOnThisMachine: a start says what of the journal the machine cannot patch: ops that it does not have, of wishes
// and of updates without an end, and records.
func TestNotOnThisMachine(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	do(t, s, enable("a", "fn1"))
	kill()
	refuse := func(as stub, ops []string, want string) {
		t.Helper()
		_, end, err := w.startOn(t, as, func(c *Config) { c.Ops = ops })
		if err == nil {
			end()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refuse(stub{never: -1}, []string{"function"},
		"make live what was live: client a, ops tracer of the journal: this machine has no such ops")
	refuse(stub{never: 1}, nil,
		"make live what was live: client a, ops tracer: record 1 of the journal cannot be patched on this machine")
	st, err := journal.Open(t.Context(), w.dir, Identity(w.Sim.Table))
	if err == nil {
		_, err = st.Accept(journal.Order{Which: []int{2}, Digest: "d", Update: Update{Client: "b", Ops: "other", Enable: true,
			Records: 1, Submitted: time.Now().UTC()}}, func(Update) {})
	}
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	refuse(stub{never: -1}, []string{"tracer"}, "update 2 of the journal: this machine has no such ops")
	refuse(stub{never: 2}, nil, "update 2: record 2 of the journal cannot be patched on this machine")
	s, kill = w.start(t)
	n := w.Sim.Table.Len()
	if err := s.patchable("tracer", []int{0, n - 1}, "x"); err != nil {
		t.Error(err)
	}
	if err := s.patchable("tracer", []int{n}, "x"); err == nil ||
		err.Error() != fmt.Sprintf("x: record %d of the journal cannot be patched on this machine", n) {
		t.Error(err)
	}
	kill()
}

// TestReceipts: an update has the receipt that its machine wrote; forecasts are counted, and those that did not hold.
func TestReceipts(t *testing.T) {
	w := newWorld(t)
	patcher := 0
	taken := []journal.Taken{{CPU: 0}, {CPU: 1, Interrupts: 3}}
	none := &journal.Receipt{Row: "CAL", Patcher: &patcher, Taken: taken}
	holds := &journal.Receipt{Row: "CAL", Patcher: &patcher, Taken: taken, Forecast: &journal.Forecast{Least: 3, Most: 3}}
	missed := &journal.Receipt{Row: "CAL", Patcher: &patcher, Taken: taken, Forecast: &journal.Forecast{Least: 4, Most: 4}}
	var next *journal.Receipt
	s, end, err := w.startOn(t, stub{never: -1, receipt: func() (*journal.Receipt, error) { return next, nil }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		receipt           *journal.Receipt
		forecasts, missed uint64
	}{{nil, 0, 0}, {none, 0, 0}, {holds, 1, 0}, {missed, 2, 1}, {holds, 3, 1}} {
		next = c.receipt
		u := do(t, s, enable("a", fmt.Sprint("fn", i)))
		if st := s.Stats(); u.Receipt != c.receipt || st.Forecasts != c.forecasts || st.Missed != c.missed {
			t.Errorf("%d: %+v, %d forecasts, %d missed", i, u.Receipt, st.Forecasts, st.Missed)
		}
	}
	end()
}

// TestHeldIsToldOnce: an update that is held is told once, with when it fits and why, however often it is looked at.
func TestHeldIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.Budget = []Limit{{Name: "ipis", Max: 3, Period: time.Hour}}
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	w.Now = func() time.Time { return at }
	s, _ := w.start(t)
	do(t, s, enable("a", "fn1"))
	r := enable("b", "fn2")
	r.Hold = true
	u, err := s.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var held []Update
	reader := s.Events(0)
	hear := func() {
		for _, e := range reader.Read(nil) {
			if e.Update != nil && e.Update.ID == u.ID && e.Update.State == journal.Held {
				held = append(held, *e.Update)
			}
		}
	}
	for len(held) == 0 {
		<-reader.More()
		hear()
	}
	for range 3 {
		do(t, s, disable("c", "fn9"))
	}
	hear()
	if len(held) != 1 || !held[0].Fits.Equal(at.Add(time.Hour)) || held[0].Phase != "ipis=3/1h0m0s, of which it takes 3" {
		t.Errorf("%d times: %+v", len(held), held)
	}
	var why *HeldError
	if _, err := s.Submit(t.Context(), enable("c", "fn3")); !errors.As(err, &why) ||
		why.Why != fmt.Sprintf("update %d is held and comes first", u.ID) {
		t.Error(err)
	}
	w = newWorld(t)
	w.Budget = []Limit{{Name: "idle", Max: 2}}
	s, _ = w.start(t)
	want := ErrBudget.Error() + ": idle=2, and each would take 3 interrupts"
	if _, err := s.Submit(t.Context(), enable("a", "fn1")); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestClockThatIsOff: a clock that is ahead by no more than the time between two looks has leases end as it says.
func TestClockThatIsOff(t *testing.T) {
	for set, want := range map[time.Duration]int{leaseTick: 0, leaseTick + 1: 1} {
		w := newWorld(t)
		var now, steady atomic.Int64
		w.Now = func() time.Time { return time.Unix(1e9, now.Load()) }
		w.Steady = func() time.Duration { return time.Duration(steady.Load()) }
		s, _ := w.start(t)
		r := enable("a", "fn1")
		r.Lease = 10
		do(t, s, r)
		steady.Store(int64(9 * time.Second))
		now.Store(int64(9*time.Second + set))
		if err := s.EndLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		do(t, s, disable("b", "fn9")) // behind it
		if wants, _ := s.Client("a"); len(wants) != want {
			t.Errorf("ahead by %v: %v", set, wants)
		}
	}
}

// TestLeaseThatCannotEnd: a lease that is over and cannot be taken away now is told, and is taken away by the next
// look.
func TestLeaseThatCannotEnd(t *testing.T) {
	w := newWorld(t)
	var now atomic.Int64
	w.Now = func() time.Time { return time.Unix(1e9+now.Load(), 0) }
	s, _ := w.start(t)
	r := enable("a", "fn1")
	r.Lease = 10
	do(t, s, r)
	now.Store(10)
	fill(s, syscall.ENOSPC)
	if err := s.EndLeases(t.Context()); !errors.Is(err, journal.ErrFull) {
		t.Errorf("%v, want that there is no room", err)
	}
	s.store.Fault(nil)
	for range 2 { // it is on its way, or has ended, the second time
		if err := s.EndLeases(t.Context()); err != nil {
			t.Error(err)
		}
	}
	do(t, s, disable("b", "fn9")) // behind it
	if wants, _ := s.Client("a"); len(wants) != 0 {
		t.Errorf("wanted are %v", wants)
	}
}
