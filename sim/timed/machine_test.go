// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestListenerHearsAll: what an update does is told as it happens: each step of the plan behind the one before, what is
// published, each round with its targets, and each target's interrupt from when it takes it until it has answered.
func TestListenerHearsAll(t *testing.T) {
	k := primes()
	k.Calls = 0
	c := plain("x86_64", "", 2, "3", k)
	c.plan = parsed(t, "    Publish\n    Write breakpoint\n    Sync 1\n    Write head\n    Unpublish\n    WaitHandlers\n")
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	c.Listener = &cpus.Listener{
		Round: func(id uint64, from int, cause cpus.Cause, targets int, at int64) {
			say("round %d of CPU %d, %v, to %d at %d", id, from, cause, targets, at)
		},
		Interrupt: func(id uint64, cpu int, cause cpus.Cause, from, until int64) {
			say("interrupt %d of CPU %d, %v, %d to %d", id, cpu, cause, from, until)
		},
		Trap:  func(cpu int, from, until int64, hit bool) { say("trap of CPU %d, %d to %d, %v", cpu, from, until, hit) },
		Step:  func(cpu int, name string, from, until int64) { say("CPU %d: %s, %d to %d", cpu, name, from, until) },
		Batch: func(at int64, fill int) { say("batch of %d at %d", fill, at) },
	}
	r := newRig(t, c)
	out := r.update(true)
	publish, stores := int64(2*k.Publish), int64(2*k.Store)
	start := int64(2*k.Verify) + publish
	sent := start + stores
	first := sent + int64(k.RoundSetup+k.Send+k.Delivery)
	second := first + int64(k.Send)
	synced := second + int64(k.Handler+k.Answer+k.Fence)
	head := synced + stores
	end := head + int64(k.Reference)
	want := []string{
		fmt.Sprintf("CPU 0: Verify, 0 to %d", int64(2*k.Verify)),
		fmt.Sprintf("batch of 2 at %d", start), fmt.Sprintf("CPU 0: Publish, %d to %d", int64(2*k.Verify), start),
		fmt.Sprintf("CPU 0: Write breakpoint, %d to %d", start, sent),
		fmt.Sprintf("round 1 of CPU 0, %v, to 2 at %d", cpus.Sync, sent),
		fmt.Sprintf("interrupt 1 of CPU 1, %v, %d to %d", cpus.Sync, first, first+int64(k.Handler)),
		fmt.Sprintf("interrupt 1 of CPU 2, %v, %d to %d", cpus.Sync, second, second+int64(k.Handler)),
		fmt.Sprintf("CPU 0: Sync 1, %d to %d", sent, synced), fmt.Sprintf("CPU 0: Write head, %d to %d", synced, head),
		fmt.Sprintf("batch of 0 at %d", end), fmt.Sprintf("CPU 0: Unpublish, %d to %d", head, end),
		fmt.Sprintf("CPU 0: WaitHandlers, %d to %d", end, end),
	}
	rest := said
	for _, line := range want { // in this order; other steps, which take no time, may stand between them
		at := 0
		for at < len(rest) && rest[at] != line {
			at++
		}
		if at == len(rest) {
			t.Fatalf("%q is not told in its place:\n%s", line, strings.Join(said, "\n"))
		}
		rest = rest[at+1:]
	}
	if int64(out.Update) != end {
		t.Errorf("the update takes %d, want %d", out.Update, end)
	}
	if n := strings.Count(strings.Join(said, "\n"), "round "); n != 1 {
		t.Errorf("%d rounds:\n%s", n, strings.Join(said, "\n"))
	}
}

// TestListenerHearsTraps: of each trap its beginning, its end, and whether an entry was found.
func TestListenerHearsTraps(t *testing.T) {
	for _, published := range []bool{true, false} {
		var said []string
		c := plain("x86_64", "breakpoint", 1, "2", primes())
		c.Listener = &cpus.Listener{Trap: func(cpu int, from, until int64, hit bool) {
			said = append(said, fmt.Sprintf("CPU %d, %d to %d, %v", cpu, from, until, hit))
		}}
		m := newRig(t, c).Machine
		m.now = 70
		if published {
			m.Publish(0, []poke.Patch{{Addr: m.code.Sites[0]}}, false)
		}
		m.Store(0, 0, 1, m.code.Arch.Breakpoint())
		m.calls.idle[1], m.cpus[1].leased = true, true
		m.execute(1, 0, false)
		over(t, m)
		cost := m.costs.TrapEntry + m.costs.TrapExit + float64(m.compared)*m.costs.Comparison
		if cost += m.costs.Reference; published { // it is taken in vain, or taken and given back
			cost += m.costs.Reference
		}
		if want := fmt.Sprintf("CPU 1, 70 to %d, %v", 70+int64(cost), published); len(said) == 0 || said[0] != want {
			t.Errorf("%q, want %q first", said, want)
		}
	}
}

// TestBurstsAndQuiet: the most interrupts of a millisecond of the clock, and the longest time without one, of an update
// and of a life; a new update begins with neither count.
func TestBurstsAndQuiet(t *testing.T) {
	var l ledger
	l.open(1, 0)
	for _, at := range []Nanos{999_998, 999_999, 1_000_000, 1_000_001, 1_000_002, 3_500_000} {
		l.take(0, cpus.Sync, at)
	}
	c, gaps := l.counts()
	if c.Burst[0] != 3 || gaps[0] != 2_499_998 || c.Taken[0][cpus.Sync] != 6 {
		t.Errorf("burst %d, gap %d, taken %v", c.Burst[0], gaps[0], c.Taken[0])
	}
	l.open(1, 4_000_000)
	l.take(0, cpus.Stop, 4_000_010)
	c, gaps = l.counts()
	if c.Burst[0] != 1 || gaps[0] != 10 || c.Taken[0][cpus.Sync] != 0 || c.Taken[0][cpus.Stop] != 1 {
		t.Errorf("the next update: burst %d, gap %d, taken %v", c.Burst[0], gaps[0], c.Taken[0])
	}
	life := l.page[0].addTo(l.life[0])
	if life.Taken != 7 || life.Burst != 3 || life.Quiet != 2_499_998 {
		t.Errorf("in all its life: %+v", life)
	}
	life.leftOut()
	life.leftOut()
	life.caughtUp()
	life.leftOut()
	if life.LeftOut != 3 || life.Owed != 1 || life.CaughtUp != 1 {
		t.Errorf("%+v", life)
	}
}

// TestCostsOfSteps: what a step of each kind takes, and nothing where it has not moved on.
func TestCostsOfSteps(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 4, "2", primes())).Machine
	write := func(p poke.Part) poke.Step { return poke.Step{Op: poke.Write, Part: p, To: 1} }
	for _, c := range []struct {
		st   poke.Step
		want Nanos
	}{
		{poke.Step{Op: poke.Verify, From: 1, To: 2}, 31}, {poke.Step{Op: poke.Verify, From: 1, To: 1}, 0},
		{write(poke.Literal), 401}, {write(poke.LiteralLow), 401}, {write(poke.LiteralHigh), 401}, {write(poke.Breakpoint),
			601},
		{write(poke.Word), 601}, {write(poke.Bytes), 601}, {poke.Step{Op: poke.Publish, From: 1, To: 4}, 3 * 41},
		{poke.Step{Op: poke.Fence}, 59}, {poke.Step{Op: poke.Sync}, 59}, {poke.Step{Op: poke.Unpublish}, 11},
		{poke.Step{Op: poke.StopMachine}, 0}, {poke.Step{Op: poke.Map, To: 3}, 0},
	} {
		m.patch.At, m.patch.Done = 3, 2
		if got := m.patchCost(c.st, 2, 2); got != c.want {
			t.Errorf("%s: %d, want %d", c.st, got, c.want)
		}
		if got := m.patchCost(c.st, 3, 1); got != c.want {
			t.Errorf("%s, one patch of several: %d, want %d", c.st, got, c.want)
		}
		if got := m.patchCost(c.st, 3, 2); got != 0 {
			t.Errorf("%s, which waits: %d", c.st, got)
		}
	}
	m.now, m.patch.began = 500, 100
	for i, op := range []poke.Op{poke.GracePeriod, poke.SynchronizeRCU, poke.Settle} {
		cost := m.patchCost(poke.Step{Op: op}, 2, 2)
		if want := Nanos(400 * min(i+1, 2)); cost != 0 || m.patch.grace != want {
			t.Errorf("%v: %d, grace periods of %d, want %d", op, cost, m.patch.grace, want)
		}
	}
}

// TestPatcherMoves: to a CPU that runs tasks, is online and does nothing, and no other.
func TestPatcherMoves(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=3,isolated=1,offline=1", primes())).Machine
	m.sit(0)
	m.cpus[2].active = true
	for cpu, want := range []bool{false, true, false, false, false} {
		if got := m.houses(cpu); got != want {
			t.Errorf("CPU %d: %v", cpu, got)
		}
	}
	m.cpus[1].online = false
	if m.houses(1) {
		t.Error("CPU 1 is offline")
	}
}

// TestPatcherGivesWay: nothing happens between steps at the end of a plan, or in a stopped machine; the patcher moves
// once in 64 times, and gives way before it publishes, in so much of a tick as has passed.
func TestPatcherGivesWay(t *testing.T) {
	plan := []poke.Step{{Op: poke.Fence}, {Op: poke.Publish}}
	for name, c := range map[string]struct {
		migrate, preempt bool
		change           func(m *Machine)
		move, give       float64 // how often, of all
	}{
		"neither":    {false, false, func(*Machine) {}, 0, 0},
		"moves":      {true, false, func(*Machine) {}, 1.0 / 64 * 2 / 3, 0},
		"gives way":  {false, true, func(*Machine) {}, 0, 0.25},
		"no publish": {false, true, func(m *Machine) { m.patch.At = 0 }, 0, 0},
		"the end":    {true, true, func(m *Machine) { m.patch.At = 2 }, 0, 0},
		"stopped":    {true, true, func(m *Machine) { m.patch.stopped = true }, 0, 0},
	} {
		k := primes()
		k.TickInterval, k.Switch, k.Away, k.Migration = 4000, 1500, 0, 700
		r := plain("x86_64", "breakpoint", 1, "3", k)
		r.Migrate, r.Preempt = c.migrate, c.preempt
		m := newRig(t, r).Machine
		const n = 20_000
		moved, gave := 0.0, 0.0
		for range n {
			m.patch = patcher{Patcher: poke.Patcher{Plan: plan}, resched: m.now - 1000}
			m.patch.At = 1
			m.sit(0)
			c.change(m)
			switch cost := m.between(); cost {
			case 0:
			case 700:
				moved++
				if m.patch.home == 0 || !m.cpus[m.patch.home].leased || m.cpus[0].leased {
					t.Fatalf("%s: moved to CPU %d", name, m.patch.home)
				}
			case 1500:
				gave++
			default:
				t.Fatalf("%s: %d ns", name, cost)
			}
			m.stand()
		}
		for _, v := range []struct{ got, want float64 }{{moved, c.move}, {gave, c.give}} {
			if math.Abs(v.got-n*v.want) > 5*math.Sqrt(n*v.want) {
				t.Errorf("%s: moved %g and gave way %g times of %d, want shares of %g and %g", name, moved, gave, n, c.move, c.give)
			}
		}
	}
}

// TestWhatPushesOut: stores are visible at once where the next step makes them so; else any number may wait.
func TestWhatPushesOut(t *testing.T) {
	m := newRig(t, plain("arm64", "breakpoint", 1, "2", primes())).Machine
	for op, want := range map[poke.Op]bool{poke.Fence: true, poke.GracePeriod: true, poke.SynchronizeRCU: true,
		poke.Unlock: true,
		poke.Write:  false, poke.Sync: false} {
		m.patch.Plan = []poke.Step{{Op: poke.Write}, {Op: op}}
		m.patch.At = 0
		if got := m.stores.pushedOut(); got != want {
			t.Errorf("before %v: %v", op, got)
		}
		seen := map[int]bool{}
		for range 100 {
			seen[m.stores.Choose(cpus.ChooseDrain, 3)] = true
		}
		if !seen[2] || len(seen) != map[bool]int{true: 1, false: 3}[want] {
			t.Errorf("before %v: answers %v", op, seen)
		}
		if got := m.stores.Choose(cpus.ChooseMove, 3); got != 2 {
			t.Errorf("another question: %d", got)
		}
	}
	m.patch.At = 1
	if m.stores.pushedOut() {
		t.Error("behind the last step nothing pushes out")
	}
}

// TestTimesEnd: a cost is rounded, and no more than all time; a step is alone up to the next event.
func TestTimesEnd(t *testing.T) {
	for cost, want := range map[float64]Nanos{0: 0, 0.49: 0, 0.5: 1, 7: 7, 1e30: horizon, float64(horizon): horizon} {
		if got := nanos(cost); got != want {
			t.Errorf("%g: %d, want %d", cost, got, want)
		}
	}
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	if !m.alone(horizon) || m.alone(horizon+1) {
		t.Error("without events one is alone up to the horizon")
	}
	m.ask(100, evLeave, 1)
	if !m.alone(99) || m.alone(100) || m.alone(101) {
		t.Error("with an event at 100 one is alone before it")
	}
}

// TestPass: time passes up to a moment, with all that happens by then, and not back; who wants an end has it.
func TestPass(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	for _, at := range []Nanos{10, 20, 30} {
		m.ask(at, evLeave, 1)
	}
	for _, c := range []struct {
		until, now Nanos
		left       Nanos
	}{{20, 20, 30}, {15, 20, 30}, {29, 29, 30}, {50, 50, 0}} {
		if err := m.Pass(t.Context(), c.until); err != nil || m.Now() != c.now {
			t.Errorf("until %d: it is %d, %v", c.until, m.Now(), err)
		}
		if at, _ := m.queue.earliest(); at != c.left {
			t.Errorf("until %d: the next event is at %d, want %d", c.until, at, c.left)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	stop(why)
	if err := m.Pass(ctx, 1e9); !errors.Is(err, why) && err != nil {
		t.Error(err)
	}
	m.ask(60, evLeave, 1)
	if err := m.happenUntil(ctx, func() bool { return false }); !errors.Is(err, why) || m.Now() != 1e9 {
		t.Errorf("%v at %d", err, m.Now())
	}
	if _, err := m.Update(ctx, Part{Update: &poke.Update{Plan: []poke.Step{{Op: poke.Fence}}}}); !errors.Is(err, why) ||
		!strings.HasPrefix(err.Error(), "timed update: ") {
		t.Errorf("an update: %v", err)
	}
}

// TestHorizon: an event at the horizon happens, one behind it is an error.
func TestHorizon(t *testing.T) {
	for at, fails := range map[Nanos]bool{horizon: false, horizon + 1: true} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
		m.ask(at, evLeave, 1)
		err := m.happenUntil(t.Context(), func() bool { return false })
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "the virtual time is 36 years") {
			t.Errorf("%d: %v", at, err)
		}
	}
}

// TestDeadlock: a patcher that no CPU will ever answer is an error and a violation, with the step that it waits at.
func TestDeadlock(t *testing.T) {
	k := primes()
	k.Calls = 0 // or they would go on calling for ever
	r := newRig(t, plain("x86_64", "breakpoint", 1, "2", k))
	r.Publish(0, []poke.Patch{{Addr: r.code.Sites[0]}}, false)
	if !r.Enter(1) { // a handler that never leaves
		t.Fatal("no reference")
	}
	_, err := r.Update(t.Context(), Part{Update: &poke.Update{Plan: []poke.Step{{Op: poke.Unpublish},
		{Op: poke.WaitHandlers}}}})
	_, all := r.Violations()
	if err == nil || err.Error() != "timed update: no CPU can move: the patcher waits at WaitHandlers" || len(all) != 1 ||
		all[0].Property != cpus.Deadlock || all[0].Why != "the patcher waits at WaitHandlers, and no CPU will ever make a step" {
		t.Errorf("%v, %v", err, all)
	}
}
