// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math/rand/v2"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// TestCatchingUpIsStolen: what an isolated CPU takes to make up for rounds that left it
// out is taken from it, and where interrupts take nothing it is all that is.
func TestCatchingUpIsStolen(t *testing.T) {
	const catchUp = 12_345
	k := calibration.Costs{CatchUp: catchUp, Entries: 1e6, KernelStretch: 100, Store: 600, TickInterval: 4e6}
	r := newRig(t, plain("x86_64", "breakpoint-lazy", 100, "busy=1,isolated=3", k))
	r.toggle()
	for cpu, role := range r.cfg.Roles {
		l := r.Life(cpu)
		if isolated := role == cpus.Isolated; l.Stolen != Nanos(l.CaughtUp)*catchUp || isolated != (l.CaughtUp > 0) {
			t.Errorf("CPU %d: %d ns stolen, %d times made up for %d ns", cpu, l.Stolen, l.CaughtUp, catchUp)
		}
	}
}

// TestLeftOut: a lazy round leaves out a CPU in user space, which owes for it from then on and will come in once,
// however many rounds leave it out. One that is in the kernel is a target, also where it came in unseen.
func TestLeftOut(t *testing.T) {
	k := primes()
	k.Entries, k.KernelStretch = 1e6, 1000
	for name, c := range map[string]struct {
		space   cpus.Space
		outside Nanos
		entry   bool
		entries float64
		drawn   float64 // below the probability that it has come in
		out     bool
		asked   uint32 // the event that follows
		event   bool
	}{
		"in the kernel": {space: 0, entries: 1e6},
		"in user space": {space: cpus.InUser, outside: longAgo, entries: 1e6, drawn: 0.5, out: true, asked: evEnter,
			event: true},
		"came in unseen": {space: cpus.InUser, outside: longAgo, entries: 1e6, drawn: 0.499, asked: evLeave, event: true},
		"has just left": {space: cpus.InUser, outside: 1000, entries: 1e6, drawn: 0, out: true, asked: evEnter,
			event: true},
		"never comes in":    {space: cpus.InUser, outside: longAgo, drawn: 0, out: true},
		"will come in":      {space: cpus.InUser, outside: longAgo, entry: true, entries: 1e6, drawn: 0.7, out: true},
		"left out before":   {space: cpus.InUser | owing(t), entries: 1e6, entry: true, out: true},
		"and comes in anew": {space: cpus.InUser | owing(t), entries: 1e6, out: true, asked: evEnter, event: true},
	} {
		m := newRig(t, plain("x86_64", "breakpoint-lazy", 1, "busy=1,isolated=1", k)).Machine
		m.now, m.costs.Entries = 1000, c.entries
		s := &m.cpus[1]
		s.space, s.outside, s.entry = c.space, c.outside, c.entry
		m.jitter = rand.New(&first{uint64(c.drawn * (1 << 53)), rand.NewPCG(1, 1)})
		if c.space.Owes() { // where it is known to be, nothing is drawn
			m.jitter = rand.New(rand.NewPCG(1, 1))
		}
		out := m.leaveOut(1)
		life := m.ledger.life[1]
		if n := map[bool]uint64{true: 1}[c.out]; out != c.out || life.LeftOut != n || life.Owed != n ||
			out != s.space.Owes() {
			t.Errorf("%s: left out %v, %+v, owes %v", name, out, life, s.space.Owes())
		}
		if any := m.queue.used != 0; any != c.event {
			t.Errorf("%s: something will happen %v", name, any)
			continue
		}
		if !c.event {
			continue
		}
		if e, _ := m.queue.pop(); m.queue.used != 0 || e.what != 1<<bitsKind|c.asked || e.at < 1000 ||
			s.entry != (c.asked == evEnter) ||
			c.asked == evLeave && e.at != s.stay {
			t.Errorf("%s: %+v, it will come in %v, stays until %d", name, e, s.entry, s.stay)
		}
	}
}

// owing is what a CPU is marked with that was left out.
func owing(t *testing.T) cpus.Space {
	t.Helper()
	s, out := cpus.InUser.LeaveOut()
	if !out {
		t.Fatal("a CPU in user space is not left out")
	}
	return s
}

// TestEnters: an entry that was asked for takes a CPU in that still owes and sleeps; an interrupt may have done so
// before.
func TestEnters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *cpuState)
		in     bool
	}{
		"owes":      {func(*cpuState) {}, true},
		"works":     {func(s *cpuState) { s.active = true }, false},
		"is in":     {func(s *cpuState) { s.cpu.Phase = cpus.Boundary }, false},
		"has no du": {func(s *cpuState) { s.space = cpus.InUser }, false},
	} {
		m := newRig(t, plain("x86_64", "breakpoint-lazy", 1, "busy=1,isolated=1", primes())).Machine
		s := &m.cpus[1]
		s.space, s.entry = owing(t), true
		c.change(s)
		m.enter(1)
		if in := s.stay > 0 || m.queue.used > 0; in != c.in || s.entry {
			t.Errorf("%s: it comes in %v, will come in %v", name, in, s.entry)
		}
	}
}

// TestCrossing: the way into the kernel takes its entry first, and then what is made up for.
func TestCrossing(t *testing.T) {
	k := primes()
	k.UserEntry, k.DeferralEntry = 1013, 17
	m := newRig(t, plain("x86_64", "breakpoint-lazy", 1, "busy=1,isolated=1", k)).Machine
	for at, want := range []struct {
		cost   Nanos
		stolen bool
	}{{1030, false}, {107, true}, {107, true}} {
		if cost, stolen := m.crossing(at); cost != want.cost || stolen != want.stolen {
			t.Errorf("step %d: %d ns, stolen %v, want %+v", at, cost, stolen, want)
		}
	}
}

// TestCostsOfCPUs: what a step takes by its phase, of which a trap's entry counts only where the step ends in it, and
// whose time it is. Comparisons are added up, and what was put off comes with the next step that takes time.
func TestCostsOfCPUs(t *testing.T) {
	type cost struct {
		takes  Nanos
		stolen bool
	}
	own := cost{}
	for p := cpus.Boundary; p <= cpus.Down; p++ {
		for _, event := range []cpus.Event{cpus.Nothing, cpus.Trap} {
			m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
			s := &m.cpus[1]
			m.comparisons, s.owes, s.cpu.Phase = 7, 1000, cpus.Syncing
			want, compared, owes := own, uint64(0), Nanos(1000)
			switch p {
			case cpus.Boundary, cpus.Again, cpus.Inside:
				if event == cpus.Trap {
					want = cost{211, true}
				}
			case cpus.Searching:
				want, compared, owes = cost{7*5 + 1000, true}, 7, 0
			case cpus.Returning, cpus.Missed:
				want, owes = cost{223 + 1000, true}, 0
			case cpus.Interrupted:
				want = cost{809, true}
			case cpus.Trapped, cpus.Leaving:
				want, owes = cost{0, true}, 1000
				if m.cfg.Refs == int3.PerCPU {
					owes += 11
				}
			}
			if takes, stolen := m.cost(s, p, event); (cost{takes, stolen}) != want || m.compared != compared || s.owes != owes {
				t.Errorf("phase %d, event %d: %d ns, stolen %v, %d compared, %d owed; want %+v, %d, %d", p, event, takes, stolen,
					m.compared, s.owes, want, compared, owes)
			}
		}
	}
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	for phase, want := range map[cpus.Phase]Nanos{cpus.Syncing: 809, cpus.Answering: 809, cpus.Boundary: 0} {
		m.cpus[1].cpu.Phase = phase
		if got, _ := m.cost(&m.cpus[1], cpus.Interrupted, cpus.Nothing); got != want {
			t.Errorf("an interrupt that goes on in phase %d: %d ns, want %d", phase, got, want)
		}
	}
}
