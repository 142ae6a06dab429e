// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
)

func machine(t *testing.T, cfg Config) *Machine {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// inverse is the update that undoes another.
func inverse(u *poke.Update) *poke.Update {
	back := *u
	back.Patches = slices.Clone(u.Patches)
	for i := range back.Patches {
		back.Patches[i].Old, back.Patches[i].New = u.Patches[i].New, u.Patches[i].Old
	}
	return &back
}

// sound holds what an update of some sites by breakpoints did against the plan: each site is stored to three times,
// each of three rounds goes to the one other CPU, which calls meanwhile and for a while longer.
func sound(t *testing.T, out Outcome, sites int) {
	t.Helper()
	home, other := 0, 1
	want := cpus.NewCounts(2)
	want.Rounds[home][cpus.Sync], want.Sent[cpus.Sync], want.Taken[other][cpus.Sync] = 3, 3, 3
	if d := cmp.Diff(want, out.Counts); d != "" || out.Stores != 3*sites || len(out.Took) != 3 || out.Callers != 1 ||
		out.Total != 0 || len(out.Findings) != 0 || out.Died {
		t.Errorf("%s%+v", d, out)
	}
	sum := time.Duration(0)
	for _, took := range out.Took {
		sum += took
	}
	if sum <= 0 || out.Elapsed < sum || out.Pace <= 0 {
		t.Errorf("%+v", out)
	}
	called := out.Tallies[other]
	if called[cpus.Begun] < out.Called+aftermath || called[cpus.Begun] != called[cpus.Traced]+called[cpus.Untraced] ||
		called[cpus.Lost]+called[cpus.Broken]+called[cpus.Miss] != 0 {
		t.Errorf("%+v, %d called", out.Tallies, out.Called)
	}
	if own := out.Tallies[home][cpus.Begun]; own < paces*stretch+aftermath {
		t.Errorf("%d calls of the patcher's CPU", own)
	}
}

// TestMachineUpdates: sites are enabled and disabled again, and counts are the plan's each time.
func TestMachineUpdates(t *testing.T) {
	cfg, u := machineOf(t, 6)
	procs := runtime.GOMAXPROCS(0)
	m := machine(t, cfg)
	if got := runtime.GOMAXPROCS(0); got != max(procs, 4) {
		t.Errorf("%d processors of Go's", got)
	}
	for i, now := range []*poke.Update{u, inverse(u), u} {
		out, err := m.Update(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		sound(t, out, 6)
		if got, want := m.begun(), m.cpus[1].Counts().Begun; got != want || got == 0 {
			t.Errorf("the other CPU has begun %d calls, told are %d", want, got)
		}
		if i == 0 && out.Tallies[1][cpus.Traced] == 0 {
			t.Errorf("%+v", out.Tallies)
		}
		for i, p := range now.Patches {
			if m.Peek(i) != p.New {
				t.Errorf("site %d: %s", i, m.Peek(i).Format(5))
			}
		}
	}
	from := m.cpus[1].Counts().Begun
	if err := m.call(t.Context()); err != nil || m.cpus[1].Counts().Begun < from+stretch {
		t.Errorf("%v, %d calls", err, m.cpus[1].Counts().Begun-from)
	}
	m.end()
	if err := errors.Join(m.rest(t.Context()), m.Close(), m.Close()); err != nil || runtime.GOMAXPROCS(0) != procs {
		t.Errorf("%v, %d processors of Go's", err, runtime.GOMAXPROCS(0))
	}
	if _, err := New(Config{Roles: make([]cpus.Role, 1000)}); said(err) == "" || errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// TestMachineFails: a store that fails ends an update and is told; the next one gets through. An end that is asked for
// comes before anything is stored.
func TestMachineFails(t *testing.T) {
	cfg, u := machineOf(t, 2)
	m := machine(t, cfg)
	fails := errors.New("no store")
	m.Fault(func(poke.Step, int32) error { return fails })
	out, err := m.Update(t.Context(), u)
	if failed, ok := errors.AsType[*poke.Error](err); !ok || !errors.Is(err, fails) || failed.State != poke.AllOld ||
		out.Total != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	m.Fault(nil)
	over, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrClosed)
	for range 2 {
		if out, err := m.Update(over, u); !errors.Is(err, os.ErrClosed) || out.Stores != 0 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if out, err = m.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	sound(t, out, 2)
	if _, err := m.Update(t.Context(), u); said(err) == "" || m.Peek(0) != u.Patches[0].New {
		t.Errorf("what is enabled is enabled again: %v", err)
	}
}

// TestIsolatedCPU: an isolated CPU is interrupted and calls nothing; one that is offline has no part.
func TestIsolatedCPU(t *testing.T) {
	cfg, u := machineOf(t, 2)
	cfg.Roles = []cpus.Role{cpus.Offline, cpus.Busy, cpus.Isolated}
	out, err := machine(t, cfg).Update(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	want := cpus.NewCounts(3)
	want.Rounds[1][cpus.Sync], want.Sent[cpus.Sync], want.Taken[2][cpus.Sync] = 3, 3, 3
	if d := cmp.Diff(want, out.Counts); d != "" || out.Callers != 0 || out.Called != 0 || out.Total != 0 ||
		out.Tallies[0] != (cpus.Tally{}) || out.Tallies[2] != (cpus.Tally{}) || out.Tallies[1][cpus.Begun] == 0 {
		t.Errorf("%s%+v", d, out)
	}
}

// broken is a machine of sites that a thread comes to grief at: one that is no instruction, one that calls a place where
// nothing leads, a breakpoint without an entry, and two that break a promise, either way.
func broken(t *testing.T) (*Machine, *poke.Update) {
	t.Helper()
	cfg, u := machineOf(t, 5)
	astray, _, err := live.Arch.Enabled(isa.Site{Addr: cfg.Code.Sites[1], Len: 5},
		isa.Destination{Target: cfg.Code.Sites[1]&^31 + 32, Entry: cfg.Code.Entry})
	if err != nil {
		t.Fatal(err)
	}
	text := []isa.Text{isa.TextOf(0x0f, 0x0b, 0x90, 0x90, 0x90), astray, isa.TextOf(0xcc, 0x90, 0x90, 0x90, 0x90),
		u.Patches[3].Old, u.Patches[4].New}
	cfg.Initial, cfg.Broken = func(i int) isa.Text { return text[i] }, true
	return machine(t, cfg), u
}

// TestFindings: each kind is told of once, with how often it was met; what is between two names is not.
func TestFindings(t *testing.T) {
	m, u := broken(t)
	c, site := m.cpus[1], func(i int) cpus.Violation {
		return cpus.Violation{CPU: 1, Site: i, Addr: u.Patches[i].Addr, Bytes: m.Peek(i).Format(5)}
	}
	before, err := m.read(true)
	if err != nil {
		t.Fatal(err)
	}
	c.Call(0, 2)
	c.Stretch(1, m.live.List([]int32{1}))
	c.Call(2, 3)
	fault, landed, missed := site(0), site(1), site(2)
	fault.Property, fault.Why = cpus.TornFetch, fmt.Sprintf("SIGILL at %s; the bytes were ud2 by then (2 such calls on this CPU)",
		u.Patches[0].Addr)
	landed.Property, landed.Why = cpus.TornFetch, "the call landed where no instruction of the plan leads"
	missed.Property = cpus.UnhandledBreakpoint
	missed.Why = "no entry for it, and it was not forgiven (3 such calls on this CPU)"
	g := m.live.Ground(0, poke.Sorted, -1)
	g.Settle(3, u.Patches[3].New) // which says that a tracer is called
	c.Stretch(1, m.live.List([]int32{3}))
	lost := site(3)
	lost.Property, lost.Why = cpus.LostCall, "the update had promised a tracer, and the call came back without"
	after, err := m.read(false)
	if err != nil {
		t.Fatal(err)
	}
	var out Outcome
	g.Broken = []cpus.Violation{{Why: "a patcher's rule"}}
	m.fill(&out, g, before, after)
	want := []cpus.Violation{fault, landed, missed, lost, g.Broken[0]}
	if d := cmp.Diff(want, out.Findings); d != "" || out.Total != 2+1+3+1+1 {
		t.Errorf("%d: %s", out.Total, d)
	}
	tally := cpus.Tally{cpus.Begun: 7, cpus.Broken: 6, cpus.Lost: 1, cpus.Trap: 3, cpus.Miss: 3}
	if d := cmp.Diff([]cpus.Tally{{}, tally}, out.Tallies); d != "" {
		t.Error(d)
	}

	before, err = m.read(true) // and forgets
	if err != nil {
		t.Fatal(err)
	}
	g.Settle(4, u.Patches[4].Old)
	c.Stretch(2, m.live.List([]int32{4}))
	stale := site(4)
	stale.Property = cpus.StaleAfterCompletion
	stale.Why = "the update had promised that no tracer is called, and the call reached the tracer (2 such calls on this CPU)"
	if after, err = m.read(true); err != nil {
		t.Fatal(err)
	}
	out = Outcome{}
	m.findings(&out, c, live.Counts{Faults: 1, Stale: 2}) // of which no fault is known any more
	if len(out.Findings) != 0 {
		t.Errorf("what was forgotten is told: %v", out.Findings)
	}
	c.Stretch(2, m.live.List([]int32{4}))
	m.findings(&out, c, live.Counts{Faults: 1, Stale: 2})
	if d := cmp.Diff([]cpus.Violation{stale}, out.Findings); d != "" || after[1].Sub(before[1]).Stale != 2 {
		t.Errorf("%+v, %s", after[1].Sub(before[1]), d)
	}
}

// TestFill: what threads counted and what a patcher sent and was answered stand with their CPUs; traps that lead nowhere
// are one finding more.
func TestFill(t *testing.T) {
	cfg, _ := machineOf(t, 1)
	none := machine(t, cfg).cpus[0].Thread // which has found nothing
	m := &Machine{home: 1, cfg: Config{Roles: make([]cpus.Role, 5)}, cpus: []*cpu{{id: 0, role: cpus.Busy, Thread: none},
		{id: 2, role: cpus.Busy, Thread: none}, {id: 3, role: cpus.Isolated, Thread: none}}}
	g := &live.Ground{Rounds: 7, Stops: 2, Stores: 11, Times: []time.Duration{5, 6}, Answers: []int{4, 90, 5},
		Halts: []int{1, 91, 2}}
	before := []live.Counts{{Begun: 10, Comparisons: 1}, {Traced: 1}, {}}
	after := []live.Counts{{Begun: 30, Comparisons: 9, Traced: 15, Untraced: 5, Traps: 6, Hits: 4, Misses: 1}, {Traced: 1}, {Begun: 3}}
	out := Outcome{Pace: 17}
	m.fill(&out, g, before, after)
	want := Outcome{Pace: 17, Stores: 11, Took: g.Times, Callers: 1, Compared: 8, Total: 1, Counts: cpus.NewCounts(5),
		Tallies: []cpus.Tally{{cpus.Begun: 20, cpus.Traced: 15, cpus.Untraced: 5, cpus.Trap: 6, cpus.Miss: 1}, {}, {}, {cpus.Begun: 3}, {}},
		Findings: []cpus.Violation{{Property: cpus.Conservation, CPU: -1, Site: -1,
			Why: "thread 0: 6 traps, 4 that found an entry and 1 that found none"}}}
	want.Counts.Rounds[2][cpus.Sync], want.Counts.Rounds[2][cpus.Stop] = 7, 2
	want.Counts.Sent[cpus.Sync], want.Counts.Sent[cpus.Stop] = 14, 4
	want.Counts.Taken[0][cpus.Sync], want.Counts.Taken[0][cpus.Stop] = 4, 1
	want.Counts.Taken[3][cpus.Sync], want.Counts.Taken[3][cpus.Stop] = 5, 2
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
}

// TestStays: a thread stays in a call where it is in one now and has begun no other since.
func TestStays(t *testing.T) {
	for _, c := range []struct {
		before, now []uint64
		want        bool
	}{{nil, []uint64{1}, false}, {[]uint64{1}, []uint64{1}, true}, {[]uint64{1, 5}, []uint64{2, 5}, true},
		{[]uint64{0, 5}, []uint64{0, 6}, false}, {[]uint64{1}, []uint64{1, 0}, true}, {[]uint64{2}, []uint64{3, 7}, false},
		{[]uint64{3, 2}, []uint64{4, 0}, false}} {
		if got := stays(c.before, c.now); got != c.want {
			t.Errorf("%v, %v: %v", c.before, c.now, got)
		}
	}
}

// TestQueued: a thread has waited for as long as the kernel says between two looks of one's own.
func TestQueued(t *testing.T) {
	unpin, err := threads.Pin(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer unpin()
	look := func() (ran, waited int64) {
		text, _ := os.ReadFile("/proc/thread-self/schedstat")
		_, _ = fmt.Sscan(string(text), &ran, &waited)
		return ran, waited
	}
	for range 100 { // until the thread has waited, and not as long as it ran
		ran, before := look()
		got, told := queued()
		_, after := look()
		if told != (ran > 0) || int64(got) < before || int64(got) > after {
			t.Fatalf("%d, %v, between %d and %d; ran %d", got, told, before, after, ran)
		}
		runtime.Gosched()
	}
}

// TestQueuedBy: the second field, where the first says that the kernel counts.
func TestQueuedBy(t *testing.T) {
	for text, want := range map[string]time.Duration{"5 7 1\n": 7, "1 0 1\n": 0, "0 0 0\n": -1, "0 7 1\n": -1, "5": -1, "": -1,
		"x 7 1": -1} {
		if got, told := queuedBy(text); told != (want >= 0) || told && got != want {
			t.Errorf("%q: %d, %v", text, got, told)
		}
	}
}

// TestOnline: threads are numbered over the CPUs that are not offline.
func TestOnline(t *testing.T) {
	roles := []cpus.Role{cpus.Offline, cpus.Busy, cpus.Offline, cpus.Isolated}
	for n, want := range []int{1, 3, -1, -1} {
		if got := online(roles, n); got != want {
			t.Errorf("thread %d: CPU %d, want %d", n, got, want)
		}
	}
	if got := disassembled([]byte{0xeb, 0xfe, 0, 0}) + disassembled([]byte{0x06}); got != "jmp .-0x2no instruction" {
		t.Error(got)
	}
}
