// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"slices"
	"sync/atomic"
	"time"
)

// A way is a section of the path that a CPU goes through between two stretches of calls:
// from user space into the kernel and back, through a non-maskable interrupt, and when
// it comes online or goes offline. It is made step by step, with interrupts off.

// WaySteps are the steps of a section that is a way; none of one that is none.
func (p *Path) WaySteps(in Section) []PathStep {
	if in < OnEntry {
		return nil
	}
	return p.programs[in].Steps()
}

// Ways tells whether a CPU has more to remember than where it is in a call: the ways
// that it goes.
func (p *Path) Ways() bool { return p.Tells || p.NMIs || p.ComesUp }

// Facts about a CPU's page tables and about its own flags, one bit each.
const (
	userCR3   uint8 = 1 << iota // user space's are loaded
	kernelNMI                   // the NMI has found the kernel's: it leaves the way in and out out
	saidUser                    // before "enter" the CPU had said that it is in user space
	leftOut                     // and rounds had left it out
)

// begin begins a way.
func (c *CPU) begin(way Section) { c.Phase, c.way, c.at = Crossing, way, 0 }

// cross makes a step of the way that the CPU is on.
func (c *CPU) cross(code *Code, sh Shared) {
	steps := code.Path.WaySteps(c.way)
	switch steps[c.at] {
	case DoCallEarly:
		c.Phase, c.Awake = Boundary, 1
		c.at++
		return
	case DoEnter:
		was := sh.EnterKernel(int(c.ID))
		c.cr3 &^= saidUser | leftOut
		if was&InUser != 0 {
			c.cr3 |= saidUser
		}
		if was.Owes() {
			c.cr3 |= leftOut
		}
	case DoCatchUp, DoSync:
		c.Synced = sh.Seq()
	case DoAwaitResume:
		if !sh.Resumed(int(c.ID)) {
			return
		}
	case DoLeave, DoLeaveAgain:
		sh.LeaveKernel(int(c.ID))
	case DoLookAtCR3:
		if c.cr3&userCR3 == 0 {
			c.cr3 |= kernelNMI
		}
	case DoLoadKernelCR3:
		c.cr3 &^= userCR3
	case DoLoadUserCR3:
		c.cr3 |= userCR3
	case DoComeOnline:
		sh.ComeOnline(int(c.ID))
	} // TakeDown has made DoGoOffline
	c.at++
	c.goOn(code, sh)
}

// goOn passes over the steps that are left out, and ends the way behind its last one.
func (c *CPU) goOn(code *Code, sh Shared) {
	steps := code.Path.WaySteps(c.way)
	for int(c.at) < len(steps) && c.leavesOut(steps) {
		c.at++
	}
	if c.Phase = Crossing; int(c.at) < len(steps) {
		return
	}
	switch c.way {
	case OnEntry:
		c.Phase, c.Awake = Boundary, awakeCalls
		c.cr3 &= userCR3
	case OnExit:
		c.Phase = Asleep
	case OnNMI:
		return // the engine that sent the NMI calls Return; see Over
	case OnUp:
		c.Phase = Boundary
		sh.EndHotplug(int(c.ID))
	case OnDown:
		c.PowerOff()
		sh.EndHotplug(int(c.ID))
	}
	c.way, c.at = AtSite, 0
}

// leavesOut tells whether the next step of the way is passed over.
func (c *CPU) leavesOut(steps []PathStep) bool {
	switch s := steps[c.at]; s {
	case DoCallEarly, DoSync:
		return false
	case DoCatchUp, DoAwaitResume:
		entered := slices.Contains(steps[:c.at], DoEnter)
		return c.cr3&kernelNMI != 0 || entered && c.cr3&leftOut == 0
	case DoLeaveAgain:
		return c.cr3&kernelNMI != 0 || c.cr3&saidUser == 0
	}
	return c.cr3&kernelNMI != 0
}

// NMI interrupts the CPU at any step and returns the interrupted state. The CPU may still
// fetch the same versions.
func (c *CPU) NMI() (under CPU) {
	under = *c
	*c = CPU{ID: c.ID, Role: c.Role, Synced: c.Synced, cr3: c.cr3 & userCR3}
	c.begin(OnNMI)
	under.Synced = 0
	return under
}

// InNMI tells whether the CPU handles a non-maskable interrupt, Over whether it is
// through with it: the CPU then has to go back, by Return.
func (c *CPU) InNMI() bool { return c.way == OnNMI }

// Over is the end of what InNMI asks for.
func (c *CPU) Over(code *Code) bool {
	return c.way == OnNMI && c.Phase == Crossing && int(c.at) == len(code.Path.WaySteps(OnNMI))
}

// Return goes back to the state that an NMI has interrupted.
func (c *CPU) Return(under CPU) {
	under.Synced = c.Synced
	*c = under
}

// Disturbs tells whether an NMI can come to a CPU now: where the path has them, to one
// that is not in another one and not offline.
func (c *Code) Disturbs(cpu *CPU) bool {
	here := c.Disturbed == 0 || c.Disturbed>>uint(cpu.ID)&1 != 0
	return here && c.Path.NMIs && !cpu.InNMI() && cpu.Phase != Down
}

// OnWay tells which way the CPU is on, and at which of its steps; AtSite where it is on
// none.
func (c *CPU) OnWay() (way Section, at int) { return c.way, int(c.at) }

// goesDown lets a CPU that stands between two calls go offline, if it may: it makes the first step of that way.
func (c *CPU) goesDown(code *Code, sh Shared, ch Chooser) bool {
	may := code.Path.GoesDown && c.Role == Busy && c.way == AtSite && c.Preemptible() && ch.Choose(ChooseDown, 2) == 1
	if !may || !sh.TakeDown(int(c.ID)) {
		return false
	}
	c.begin(OnDown)
	c.cross(code, sh)
	return true
}

// Offline tells whether rounds pass over the CPU: it is down, on its way there, or on its way up.
func (c *CPU) Offline(code *Code) bool {
	return c.Phase == Down || c.way == OnDown || c.way == OnUp && !slices.Contains(code.Path.WaySteps(OnUp)[:c.at], DoComeOnline)
}

// PowerOff makes the CPU one that is offline.
func (c *CPU) PowerOff() { c.Phase = Down }

// The rules of the ways: each names the mistake of a section, and the step.

// once refuses a step that is there a second time, and one that is behind "call a site"
// where the call must be first.
func once(steps []PathStep, callFirst bool) *PathError {
	for i, s := range steps {
		switch {
		case slices.Contains(steps[:i], s):
			return wrong(i, "%s: a second time", s)
		case callFirst && s == DoCallEarly && i > 0:
			return wrong(i, "%s: want it first", s)
		}
	}
	return nil
}

// compileEntry takes an early call, or none, and the others in any order: one of them at
// least says where the CPU is or makes it fetch afresh.
func (p *Path) compileEntry(steps []PathStep) *PathError {
	p.Tells = len(steps) > 0
	if err := once(steps, true); err != nil || !p.Tells {
		return err
	}
	for _, s := range []PathStep{DoEnter, DoCatchUp, DoSync} {
		if slices.Contains(steps, s) {
			return nil
		}
	}
	return wrong(len(steps)-1, "want %q or %q behind it", DoEnter, DoCatchUp)
}

// needs takes steps in any order, each once, among them one; why says what a section without it is worth.
func needs(one PathStep, why string) func(steps []PathStep) *PathError {
	return func(steps []PathStep) *PathError {
		if err := once(steps, false); err != nil || len(steps) == 0 || slices.Contains(steps, one) {
			return err
		}
		return wrong(len(steps)-1, "want %q: %s", one, why)
	}
}

// compileNMI takes one call, "look at cr3" first or not at all, and the others in any
// order.
func compileNMI(steps []PathStep) *PathError {
	if err := once(steps, false); err != nil || len(steps) == 0 {
		return err
	}
	entered := slices.Index(steps, DoEnter)
	for i, s := range steps {
		switch {
		case s == DoLookAtCR3 && i > 0:
			return wrong(i, "%s: want it first", s)
		case s == DoLeaveAgain && (entered < 0 || i < entered):
			return wrong(i, "%s: no %q before it", s, DoEnter)
		}
	}
	return needs(DoCallEarly, "an interrupt that calls nothing makes no difference")(steps)
}

// compileDown takes "go offline", and a call behind it.
func compileDown(steps []PathStep) *PathError {
	if err := once(steps, false); err != nil || len(steps) == 0 {
		return err
	}
	if steps[0] != DoGoOffline {
		return wrong(0, "%s: want %q first: before it the CPU is as any other", steps[0], DoGoOffline)
	}
	return nil
}

// Pacing is how much of the time the CPUs' own tasks run. CPUs answer interrupts and give
// leases in every pacing.
type Pacing int32

// The pacings. While no patcher works and no reader watches or counts, calls only take the host's
// cores from others.
const (
	Running Pacing = iota // all the time: evidence under true parallelism
	Paced                 // one quantum in each pace
	Resting               // not until a patcher or a clock waits for them
)

// pace is how long a CPU that is paced waits between two quanta: long beside the microseconds that
// one takes, and short for a human reader.
const pace = time.Millisecond

// aftermath is how many steps a CPU makes on its own once it may rest, so that it can
// break the last update's promises.
const aftermath = 1024

// SetPacing sets the pacing from now on: a new machine is Running.
func (m *Machine) SetPacing(g Pacing) {
	m.pacing.Store(int32(g))
	m.wake()
}

// wake lets every CPU look at the pacing again.
func (m *Machine) wake() {
	for _, r := range m.runners {
		r.ring()
	}
}

// goOn ends a sender's wait.
func (m *Machine) goOn() {
	m.waiting.Add(-1)
	m.wake()
}

// pacingNow is Resting while every patcher of a machine that runs waits for answers: a CPU that has
// answered makes some more calls, and would then only keep from a core those that have not.
func (m *Machine) pacingNow() Pacing {
	g := Pacing(m.pacing.Load())
	if n := m.waiting.Load(); g == Running && n > 0 && n == m.leases.Load() {
		return Resting
	}
	return g
}

// pause is the goroutine's own state where the CPU does not run all the time: how far it
// is on the way to its next stop.
type pause struct {
	since int         // steps since the CPU last ran all the time
	still atomic.Bool // the goroutine waits; for tests
}

// mayStop counts the steps of a quantum, and tells whether the CPU may stop behind it.
func (r *runner) mayStop(steps int) (g Pacing, stop bool) {
	if g = r.m.pacingNow(); g == Running {
		r.pause.since = 0
		return g, false
	}
	r.pause.since += steps
	return g, r.pause.since > aftermath && r.cpu.BetweenCalls() && r.cpu.Preemptible()
}

// stop waits for the rest of a pace, or until a patcher or a clock waits for the CPU. The CPU may
// still fetch the same versions afterwards: it has not synchronised.
func (r *runner) stop(g Pacing) {
	defer r.asleep.Store(false)
	r.raiseFlag()
	if !r.lastLook() || r.m.pacingNow() != g {
		return
	}
	r.pause.still.Store(true)
	defer r.pause.still.Store(false)
	if g == Resting {
		<-r.bell
		return
	}
	next := time.NewTimer(pace)
	defer next.Stop()
	select {
	case <-r.bell:
	case <-next.C:
	}
}
