// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestCPUsAreGivenBack: when an update is over, every CPU that calls functions of its own has time for it, and nobody
// sits on any: neither where the patcher began nor where it went.
func TestCPUsAreGivenBack(t *testing.T) {
	for _, migrates := range []bool{false, true} {
		c := plain("x86_64", "native", 200, "busy=3,idle=1,isolated=1,irqsoff=2,offline=1", plainCosts())
		c.Migrate = migrates
		m := newRig(t, c)
		for i := range 4 {
			m.update(i%2 == 0)
			for cpu := range m.cpus {
				s := &m.cpus[cpu]
				calls := s.cpu.Role == cpus.Busy || s.cpu.Role == cpus.IrqsOff
				if s.leased || s.active || s.stopped || m.calls.idle[cpu] == calls {
					t.Errorf("migrates %v, update %d, %v CPU %d: leased %v, active %v, stopped %v, no time for calls %v",
						migrates, i, s.cpu.Role, cpu, s.leased, s.active, s.stopped, m.calls.idle[cpu])
				}
			}
			if m.calls.available != 5 {
				t.Errorf("migrates %v, update %d: %d CPUs have time for calls, want 5", migrates, i, m.calls.available)
			}
		}
	}
}

// TestStand: whoever is given back has time for calls if it makes any and does nothing else, and a task that waited
// for it has it back.
func TestStand(t *testing.T) {
	for _, role := range []cpus.Role{cpus.Busy, cpus.IrqsOff, cpus.Idle, cpus.Isolated, cpus.Offline} {
		for _, active := range []bool{false, true} {
			m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=1,"+role.String()+"=1", primes())).Machine
			s := &m.cpus[1]
			m.sit(1)
			if !m.calls.idle[1] || !s.leased || m.patch.home != 1 || m.calls.available != 1 {
				t.Errorf("%v: on it sits %+v, %d CPUs have time", role, m.patch.home, m.calls.available)
			}
			s.active, s.due = active, true
			m.stand()
			calls := (role == cpus.Busy || role == cpus.IrqsOff) && !active
			if m.calls.idle[1] == calls || s.leased || m.calls.available != map[bool]int{false: 1, true: 2}[calls] {
				t.Errorf("%v, active %v: no time %v, leased %v, %d CPUs have time", role, active, m.calls.idle[1], s.leased,
					m.calls.available)
			}
			if s.due != (active || !s.cpu.CanUnpark()) {
				t.Errorf("%v, active %v: its task still waits %v", role, active, s.due)
			}
		}
	}
}

// TestThinnedCalls: a call is made where all are, or where it can meet something, and is only counted by what is known
// of its site where it meets nothing. One that will be preempted is made in any case.
func TestThinnedCalls(t *testing.T) {
	for _, thinning := range []Thinning{HotOnly, Every, EverySkip} {
		for _, hot := range []bool{false, true} {
			for _, park := range []bool{false, true} {
				c := plain("x86_64", "breakpoint", 2, "2", primes())
				c.Calls = thinning
				m := newRig(t, c).Machine
				m.calls.heat[1] = heat{enabled: true, published: hot} // while the site's text calls nobody
				m.execute(1, 1, park)
				counted := thinning == EverySkip && !hot && !park
				want := cpus.Tally{cpus.Begun: 1, cpus.Untraced: 1}
				if counted {
					want = cpus.Tally{cpus.Begun: 1, cpus.Traced: 1}
				}
				if got := m.cpus[1].tally; got != want {
					t.Errorf("%v, hot %v, preempted %v: %v, want %v", thinning, hot, park, got, want)
				}
				if m.steps.site != anySite || m.cpus[1].park {
					t.Errorf("%v, hot %v, preempted %v: the call is not over", thinning, hot, park)
				}
			}
		}
	}
	m := newRig(t, plain("x86_64", "breakpoint", 2, "2", primes())).Machine
	for enabled, want := range map[bool]cpus.Event{false: cpus.Untraced, true: cpus.Traced} {
		m.calls.heat[0].enabled = enabled
		if got := m.coldEvent(0); got != want {
			t.Errorf("enabled %v: %v", enabled, got)
		}
	}
}

// numbers is a source of random numbers that are written down.
type numbers []uint64

func (n *numbers) Uint64() uint64 {
	x := (*n)[0]
	*n = (*n)[1:]
	return x
}

// TestBetweenSteps: one step in 64 sends the patcher to another CPU, if that can house it, which takes a migration; all
// stand still for a machine that is stopped, and at the end of the plan nothing comes any more.
func TestBetweenSteps(t *testing.T) {
	k := primes()
	k.Migration = 5003
	for name, c := range map[string]struct {
		drawn numbers // whether it moves, and where to
		off   bool    // it may not move
		p     patcher
		want  int
	}{
		"moves":          {drawn: numbers{64, 2}, want: 2},
		"stays":          {drawn: numbers{1}},
		"to an idle one": {drawn: numbers{0, 3}, want: 3},
		"to itself":      {drawn: numbers{0, 0}},
		"may not":        {off: true},
		"stopped":        {p: patcher{stopped: true}},
		"at the end":     {p: patcher{Patcher: poke.Patcher{At: 1}}},
	} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=3,idle=1", k)).Machine
		m.cfg.Migrate = !c.off
		m.patch = c.p
		m.patch.Plan = []poke.Step{{Op: poke.Fence}}
		m.sit(0)
		m.jitter = rand.New(&c.drawn)
		cost := m.between()
		if m.patch.home != c.want || cost != map[bool]Nanos{true: 5003}[c.want != 0] || len(c.drawn) != 0 {
			t.Errorf("%s: on CPU %d for %d ns, %d numbers left; want CPU %d", name, m.patch.home, cost, len(c.drawn), c.want)
		}
		for cpu := range m.cpus {
			if s := &m.cpus[cpu]; s.leased != (cpu == c.want) {
				t.Errorf("%s: CPU %d is leased %v", name, cpu, s.leased)
			}
		}
	}
}

// TestGivesWay: before a batch, and nowhere else, the patcher gives way with the share of a tick's time that has passed
// since it last looked; a switch and a stay go by.
func TestGivesWay(t *testing.T) {
	k := primes()
	k.Switch, k.Away, k.TickInterval = 1511, 1e6, 4000
	for _, c := range []struct {
		op     poke.Op
		since  Nanos
		share  float64
		gives  bool
		before bool // preemption is on
	}{
		{poke.Publish, 1000, 0.24, true, true}, {poke.Publish, 1000, 0.25, false, true}, {poke.Publish, 0, 0, false, true},
		{poke.Publish, 9000, 0.99, true, true}, {poke.Fence, 9000, 0, false, true}, {poke.Publish, 9000, 0, false, false},
	} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "2", k)).Machine
		m.cfg.Preempt = c.before
		m.now = 10_000
		m.patch = patcher{Patcher: poke.Patcher{Plan: []poke.Step{{Op: c.op}}}, resched: m.now - c.since}
		rest := rand.NewPCG(3, 4)
		stay := rand.New(rand.NewPCG(3, 4)).ExpFloat64() * k.Away
		m.jitter = rand.New(&first{uint64(c.share * (1 << 53)), rest})
		want := Nanos(0)
		if c.gives {
			want = nanos(k.Switch) + nanos(stay)
		}
		looked := c.before && c.op == poke.Publish
		if got := m.between(); got != want || (m.patch.resched == m.now) != (looked || c.since == 0) {
			t.Errorf("%+v: %d ns, want %d; it last looked at %d", c, got, want, m.patch.resched)
		}
	}
}

// first is a number, and then what a source has; math.MaxUint64 is none.
type first struct {
	number uint64
	rest   rand.Source
}

func (f *first) Uint64() uint64 {
	if x := f.number; x != math.MaxUint64 {
		f.number = math.MaxUint64
		return x
	}
	return f.rest.Uint64()
}

// TestHouses: another CPU that is online, rests, and has a role in which the patcher runs.
func TestHouses(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=2,idle=1,isolated=1,irqsoff=1,offline=1", primes())).Machine
	for cpu := range m.cpus {
		s := &m.cpus[cpu]
		want := cpu != 0 && s.cpu.Role.RunsPatcher() && s.cpu.Role != cpus.Offline
		if got := m.houses(cpu); got != want {
			t.Errorf("%v CPU %d: %v", s.cpu.Role, cpu, got)
		}
		if s.active = true; m.houses(cpu) {
			t.Errorf("%v CPU %d works, and houses the patcher", s.cpu.Role, cpu)
		}
	}
	if s := &m.cpus[1]; s.cpu.Role.RunsPatcher() {
		if s.active, s.online = false, false; m.houses(1) {
			t.Error("a CPU that is offline houses the patcher")
		}
	}
}

// ending is a context that ends at the n-th question.
type ending struct {
	context.Context
	left int
}

var errEnough = errors.New("enough")

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return errEnough
	}
	return nil
}

// TestEndsAnywhere: whenever somebody wants an end of an update, it comes as that error, and without an outcome.
func TestEndsAnywhere(t *testing.T) {
	ends := 0
	for left := range 100 {
		r := newRig(t, plain("x86_64", "native", 4, "busy=2,isolated=1", plainCosts()))
		part, err := r.part(true)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &ending{t.Context(), left}
		out, err := r.Update(ctx, part)
		if ctx.left >= 0 {
			if err != nil || out.Update == 0 {
				t.Errorf("%v, %+v", err, out)
			}
			break
		}
		ends++
		if err == nil || err.Error() != "timed update: enough" || out.Update != 0 || out.Tallies != nil {
			t.Errorf("after %d questions: %v, %+v", left, err, out)
		}
	}
	if ends < 3 {
		t.Errorf("an update asks %d times", ends)
	}
}
