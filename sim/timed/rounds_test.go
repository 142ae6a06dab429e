// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// arrivals are when interrupts get to CPUs, by all events that are asked for.
func arrivals(m *Machine) map[int]Nanos {
	at := map[int]Nanos{}
	for m.queue.used > 0 {
		e, _ := m.queue.pop()
		if e.what&kindMask == evArrive {
			at[int(e.what>>bitsKind)] = e.at
		}
	}
	return at
}

// TestRoundGetsThere: a round is set up and sent to one CPU after the other; each takes it after its delivery, one that
// sleeps when it is awake, one that stands still when its task has run. Neither the sender nor a CPU that is offline
// is a
// target.
func TestRoundGetsThere(t *testing.T) {
	k := primes()
	for name, c := range map[string]struct {
		send func(m *Machine)
		want map[int]Nanos
		left int
	}{
		"round": {func(m *Machine) { m.Send(cpus.Sync, false) },
			map[int]Nanos{1: 1000 + 503 + 53 + 1009, 2: 1000 + 503 + 2*53 + 1009 + 2003, 3: 1000 + 503 + 3*53 + 1009}, 3},
		"stops": {func(m *Machine) { m.StopMachine(false) },
			map[int]Nanos{1: 1000 + 503 + 53 + 1009 + 5003, 2: 1000 + 503 + 2*53 + 1009 + 5003 + 2003,
				3: 1000 + 503 + 3*53 + 1009 + 5003}, 3},
		"lazy": {func(m *Machine) { m.Send(cpus.Sync, true) },
			map[int]Nanos{1: 1000 + 503 + 53 + 1009, 2: 1000 + 503 + 2*53 + 1009 + 2003}, 2},
		"grace period": {func(m *Machine) { m.Send(cpus.Quiesce, false) }, map[int]Nanos{1: 1000, 2: 1000}, 2},
		"of all":       {func(m *Machine) { m.quiesce(cpus.QuiesceCPUs, true) }, map[int]Nanos{1: 1000, 2: 1000, 3: 1000}, 3},
	} {
		m := newRig(t, plain("x86_64", "breakpoint-lazy", 1, "busy=2,idle=1,isolated=1,offline=1", k)).Machine
		m.now, m.patch.cause = 1000, cpus.Sync
		c.send(m)
		p := &m.patch
		sender := Nanos(1000 + 503 + c.left*53)
		if len(c.want) > 0 && c.want[1] == 1000 { // nothing is sent, and nobody waits shorter than a grace period
			sender = 1000 + nanos(k.GracePeriod)
		}
		if p.left != c.left || p.busy != sender {
			t.Errorf("%s: %d answers are missing, the sender is busy until %d; want %d, %d", name, p.left, p.busy, c.left,
				sender)
		}
		if d := cmp.Diff(c.want, arrivals(m)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		last := Nanos(0)
		for _, at := range c.want {
			last = max(last, at)
		}
		if p.reached != last && last != 1000 {
			t.Errorf("%s: all are reached at %d, want %d", name, p.reached, last)
		}
		sent := m.ledger.sent
		if n := sent.TotalRounds(cpus.Sync); name == "round" && (n != 1 || sent.Sent[cpus.Sync] != 3) {
			t.Errorf("%s: %d rounds, %v sent", name, n, sent.Sent)
		}
		if stopped := m.patch.stopped; stopped != (name == "stops") || stopped && m.patch.asked != 3 {
			t.Errorf("%s: stopped %v, %d asked", name, stopped, m.patch.asked)
		}
	}
}

// TestRoundsOfAPart: a round is counted under the cause of the part that sends it, one of another kind under its own.
func TestRoundsOfAPart(t *testing.T) {
	for _, c := range []struct{ part, sent, want cpus.Cause }{
		{cpus.Sync, cpus.Sync, cpus.Sync}, {cpus.CoreSync, cpus.Sync, cpus.CoreSync}, {cpus.Sync, cpus.CoreSync,
			cpus.CoreSync},
	} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "3", primes())).Machine
		m.patch.cause = c.part
		m.Send(c.sent, false)
		if n := m.ledger.sent.Sent; n[c.want] != 2 || m.patch.sent != c.want {
			t.Errorf("%v in a part of %v: %v sent, as %v", c.sent, c.part, n, m.patch.sent)
		}
	}
}

// TestAnswersWake: the patcher goes on when the last answer is there and all that were to stand still do, an answer's
// time later, and not before it is done with sending. Nobody wakes it who waits for something else.
func TestAnswersWake(t *testing.T) {
	for name, c := range map[string]struct {
		p    patcher
		want Nanos
	}{
		"all there":     {patcher{awaits: forAnswers}, 1101},
		"still sending": {patcher{awaits: forAnswers, busy: 5000}, 5000},
		"one missing":   {patcher{awaits: forAnswers, left: 1}, 0},
		"not all stand": {patcher{awaits: forAnswers, arrived: 1, asked: 2}, 0},
		"all stand":     {patcher{awaits: forAnswers, arrived: 2, asked: 2}, 1101},
		"for handlers":  {patcher{awaits: forHandlers}, 0},
		"for nothing":   {patcher{}, 0},
	} {
		for way, answer := range map[string]func(m *Machine){
			"": (*Machine).answered,
			"answer ": func(m *Machine) {
				m.patch.left++
				m.Answer(0)
			},
			"arrival ": func(m *Machine) {
				m.patch.arrived--
				m.Arrive(1)
			},
		} {
			m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
			m.now, m.patch = 1000, c.p
			answer(m)
			at, any := m.queue.earliest()
			if any != (c.want > 0) || any && (at != c.want || m.patch.next != at || m.patch.awaits != forNothing) {
				t.Errorf("%s%s: %d, %v, want %d", way, name, at, any, c.want)
			}
			if m.cpus[1].stopped != (way == "arrival ") {
				t.Errorf("%s%s: CPU 1 stands still %v", way, name, m.cpus[1].stopped)
			}
		}
	}
}

// TestAnsweredInTime: an answer counts when all are there and the sender's own time is over, not a nanosecond before.
func TestAnsweredInTime(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	m.now = 1000
	for _, c := range []struct {
		left, arrived, asked int
		busy                 Nanos
		answered, stopped    bool
	}{
		{busy: 1000, answered: true, stopped: true}, {busy: 1001}, {left: 1}, {arrived: 1, asked: 1, answered: true,
			stopped: true},
		{asked: 1, answered: true}, {arrived: 1, asked: 1, left: 1},
	} {
		m.patch = patcher{left: c.left, arrived: c.arrived, asked: c.asked, busy: c.busy}
		if a, s := m.Answered(), m.Stopped(); a != c.answered || s != c.stopped {
			t.Errorf("%+v: answered %v, stopped %v", c, a, s)
		}
	}
}

// TestMasks: only CPUs that mask interrupts do, half of their time; a stretch with masks lasts as long as was said, and
// what is left of it has no memory.
func TestMasks(t *testing.T) {
	k := primes()
	k.MaskedStretch = 500
	m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=1,irqsoff=1", k)).Machine
	m.jitter = rand.New(&numbers{}) // nothing is drawn of a CPU that never does
	if left := m.masks(&m.cpus[0], 1000); left != 0 {
		t.Errorf("a busy CPU masks for %d ns", left)
	}
	m.costs.MaskedStretch = 0
	if left := m.masks(&m.cpus[1], 1000); left != 0 {
		t.Errorf("a stretch of 0 ns takes %d", left)
	}
	m.costs.MaskedStretch = 500
	m.jitter = rand.New(rand.NewPCG(1, 5))
	for _, after := range []Nanos{0, 200, 1e9} {
		const n = 40_000
		masked, sum, squares := 0.0, 0.0, 0.0
		for range n {
			s := &cpuState{cpu: cpus.CPU{Role: cpus.IrqsOff}, maskedAt: 700}
			left := float64(m.masks(s, 700+after))
			if left > 0 {
				masked++
				sum, squares = sum+left, squares+left*left
			}
			if s.masked || s.maskedAt != 700+after+Nanos(left) { // after that it does not
				t.Fatalf("masks %v at %d, want no more at %d", s.masked, s.maskedAt, 700+after+Nanos(left))
			}
		}
		// Two states with equal exponential rates 1/500: it has changed with this probability.
		want := (1 - math.Exp(-2*float64(after)/500)) / 2
		if math.Abs(masked/n-want) > 4*math.Sqrt(want*(1-want)/n)+2e-3 { // a stretch below half a nanosecond is none
			t.Errorf("after %d ns %g of all mask, want %g", after, masked/n, want)
		}
		if mean := sum / masked; masked > 0 && math.Abs(mean-500) > 4*500/math.Sqrt(masked)+1 {
			t.Errorf("after %d ns for %g ns on average, want 500", after, mean)
		}
	}
}

// TestMailbox: an interrupt waits while its CPU masks it, is taken once, and counted under its cause.
func TestMailbox(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	for _, cause := range []cpus.Cause{cpus.Sync, cpus.CoreSync, cpus.Stop, cpus.Quiesce, cpus.QuiesceCPUs} {
		s := &m.cpus[1]
		for _, masked := range []bool{true, false} {
			s.box, s.boxed = cause, true
			m.ledger.open(2, 0)
			waits := masked && m.code.Maskable(cause)
			if m.Pending(1, masked) == waits {
				t.Errorf("%v, masked %v: pending %v", cause, masked, !waits)
			}
			taken, ok := m.Take(1, masked)
			if ok == waits || ok && taken.Cause != cause || s.boxed != waits {
				t.Errorf("%v, masked %v: %v, %v; it is still there %v", cause, masked, taken, ok, s.boxed)
			}
			total := uint64(0)
			for _, n := range m.ledger.page[1].taken {
				total += n
			}
			counts := ok && int(cause) < cpus.NumCauses
			if total != map[bool]uint64{true: 1}[counts] || counts && m.ledger.page[1].taken[cause] != 1 {
				t.Errorf("%v, masked %v: %v taken", cause, masked, m.ledger.page[1].taken)
			}
		}
		s.boxed = false
		if taken, ok := m.Take(1, false); ok || taken != (cpus.Taken{}) {
			t.Errorf("nothing is there: %v", taken)
		}
	}
}

// TestHotplugOneAtATime: one CPU is brought up or taken down at a time, and none while a patcher holds the lock; one
// that is asked something stays online.
func TestHotplugOneAtATime(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	if !m.TakeDown(1) || m.cpus[1].online || m.BringUp(0) || m.TakeDown(0) || !m.cpus[0].online {
		t.Errorf("CPU 1 is online %v, CPU 0 %v", m.cpus[1].online, m.cpus[0].online)
	}
	lock := poke.Access{Op: poke.Lock, Mutex: poke.HotplugLock}
	if m.Share(lock) {
		t.Error("the patcher has the lock of a CPU that goes down")
	}
	if other := (poke.Access{Op: poke.Lock, Mutex: poke.TextMutex}); !m.Share(other) {
		t.Error("the patcher waits with another lock for a CPU that goes down")
	}
	m.EndHotplug(1)
	if m.ComeOnline(1); !m.cpus[1].online {
		t.Error("CPU 1 has not come")
	}
	m.cpus[1].boxed, m.cpus[1].box = true, cpus.Sync
	if m.TakeDown(1) || m.bringing {
		t.Error("a CPU that is asked something goes")
	}
	if !m.Share(lock) {
		t.Error("the patcher waits for nobody")
	}
	if m.cpus[1].boxed = false; m.BringUp(1) || m.TakeDown(1) || m.bringing {
		t.Error("a CPU goes while the patcher has the lock")
	}
}

// TestResumed: who stands still goes on an answer's time after the flag; who is on its way goes on there.
func TestResumed(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "4", primes())).Machine
	m.now = 1000
	m.cpus[1].stopped = true
	m.cpus[2].stopped, m.cpus[2].active = true, true
	m.patch.stopped, m.patch.arrived, m.patch.asked = true, 2, 3
	if m.Resumed(1) || !m.Resumed(3) {
		t.Error("CPU 1 goes on by itself, or CPU 3 does not")
	}
	m.ResumeMachine()
	e, _ := m.queue.pop()
	if e.at != 1101 || e.what != 1<<bitsKind|evCPU || m.queue.used != 0 || !m.cpus[1].active || m.cpus[3].active {
		t.Errorf("%+v, and %d more events", e, m.queue.used)
	}
	if p := &m.patch; p.stopped || p.arrived != 0 || p.asked != 0 || !m.Resumed(1) || !m.Resumed(2) {
		t.Errorf("stopped %v, %d arrived of %d", p.stopped, p.arrived, p.asked)
	}
}
