// SPDX-License-Identifier: Apache-2.0

package cpus

import "fmt"

// table is a path compiled for Step: for each phase the next one, and the facts that Step needs in
// it. A phase is a step that is under way. Other packages read the exported facts and write none.
type table struct {
	next [numPhases]Phase // of the handler's phases
	trap Phase            // the handler's first

	After  PathStep // what follows the fetch: DoLoadLiteral, DoLookUpDirect or DoCall
	missed PathStep // how a miss ends: DoGoBack, DoSkip or DoFatal

	Guards       bool // a word guards the site
	fetchesGuard bool // which is fetched first, among the instructions
	guardSyncs   bool // and a CPU that has found it armed fetches afresh behind it
	Signals      bool // the handler is a signal's: interrupts are on until it begins

	Apart    bool // the ops is loaded before the site is fetched: ops and function are read in two places
	Syncs    bool // the handler makes the CPU fetch afresh at its end
	skips    bool // and goes on behind the site
	GoesBack bool // and goes back to the site's first instruction
	again    bool // a miss looks at the text again
	Tells    bool // the CPU says where it is, in the kernel or in user space, so that rounds can leave it out
	refers   bool // the handler takes a reference
	NMIs     bool // there is a program for NMIs
	ComesUp  bool // and one for CPUs that come online
	GoesDown bool // and one for CPUs that go offline; these come online again

	masked uint32 // phases, one bit each, at whose border interrupts are held back
	holds  uint32 // phases in which the handler holds a reference
	found  uint32 // phases that come behind the look-up
}

// phaseOf is the phase in which a step is made. The first one of a call is made at
// the Boundary between two calls, and a fetch again when the handler goes back to it.
var phaseOf = [numPathSteps]Phase{
	DoFetchGuard: Boundary, DoAwaitGuard: Guarded, DoFetch: Again,
	DoLoadLiteral: Entered, DoLookUpDirect: Entered, DoCall: Calling,
	DoTakeReference: Trapped, DoLookUp: Searching, DoGiveBack: Leaving, DoAct: Returning, DoSkip: Returning,
	DoGoBack: Retrying,
	DoEnter:  Crossing, DoCatchUp: Crossing, DoAwaitResume: Crossing, DoLeave: Crossing, DoLeaveAgain: Crossing,
	DoLookAtCR3: Crossing, DoLoadKernelCR3: Crossing, DoLoadUserCR3: Crossing, DoComeOnline: Crossing, DoGoOffline: Crossing,
}

// PhaseOf is the phase in which a step of a section is made; false where it is none
// of its own: masking and synchronising go with the step beside them, an early call
// is a call.
func (p *Path) PhaseOf(in Section, s PathStep) (Phase, bool) {
	switch s {
	case DoMask, DoUnmask, DoSync, DoCallEarly:
		return 0, false
	case DoFetch:
		if !p.Apart && !p.Guards {
			return Boundary, true
		}
	case DoLookAgain, DoFatal:
		return Missed, true
	case DoGoBack:
		return Retrying, true
	case DoSkip:
		if in == OnMiss {
			return Missed, true
		}
	}
	return phaseOf[s], true
}

// compile works the table out, and refuses what makes no sense.
func (p *Path) compile() error {
	p.table = table{}
	for i, program := range p.programs {
		for at, s := range program.Steps() {
			if !s.in(Section(i)) {
				return &PathError{Section(i), at, fmt.Sprintf("%s: no step of this section", s)}
			}
		}
	}
	compilers := [NumSections]func([]PathStep) *PathError{
		p.compileSite, p.compileHandler, p.compileMiss, p.compileEntry,
		needs(DoLeave, "a CPU that never says so is never left out"), compileNMI,
		needs(DoComeOnline, "no round would ever reach the CPU"), compileDown,
	}
	for i, compile := range compilers {
		if err := compile(p.programs[i].Steps()); err != nil {
			err.Section = Section(i)
			return err
		}
	}
	p.NMIs, p.ComesUp = p.programs[OnNMI] != Program{}, p.programs[OnUp] != Program{}
	p.GoesDown = p.programs[OnDown] != Program{}
	if p.GoesDown && !p.ComesUp {
		err := wrong(0, "%s: want a section %q: a CPU that goes comes back", DoGoOffline, OnUp)
		err.Section = OnDown
		return err
	}
	return nil
}

// wrong is an error about the step at an index.
func wrong(at int, format string, args ...any) *PathError {
	return &PathError{At: at, Reason: fmt.Sprintf(format, args...)}
}

// siteOrder is where a step of a call has its place among the others, from 1.
var siteOrder = [numPathSteps]int{
	DoLoadOps: 1, DoFetchGuard: 1, DoAwaitGuard: 2, DoSync: 3, DoFetch: 4, DoLoadLiteral: 5, DoLookUpDirect: 5, DoCall: 6,
}

// compileSite takes: load ops, or a guard, or nothing; the fetch; load literal, look up
// direct call, or nothing; call. Interrupts may be masked over some of it, where there is
// no guard.
func (p *Path) compileSite(steps []PathStep) *PathError {
	var at PathStep
	mask := -1 // the index of the DoMask that holds
	for i, s := range steps {
		if at != DoCall && (s == DoMask || s == DoUnmask) {
			if err := maskAt(i, s, &mask); err != nil {
				return err
			}
			continue
		}
		switch {
		case at == DoCall:
			return wrong(i, "%s: the call is over", s)
		case siteOrder[s] == 5 && p.Apart && at == DoFetch:
			return wrong(i, "%s: the ops is loaded already", s)
		case (s == DoFetchGuard || s == DoAwaitGuard) && steps[0] == DoMask:
			return wrong(i, "%s: a patcher that disarms it could wait for this CPU for ever: interrupts are masked", s)
		case siteOrder[s] <= siteOrder[at], siteOrder[s] > 4 && siteOrder[at] < 4,
			s == DoAwaitGuard && at == DoLoadOps, s == DoSync && at != DoAwaitGuard, s == DoFetch && at == DoFetchGuard:
			return wrong(i, "%s: out of its order: want the ops or a guard or neither, the fetch, "+
				"the literal or the direct call or neither, the call", s)
		}
		switch at = s; s {
		case DoLoadOps:
			p.Apart = true
		case DoFetchGuard:
			p.fetchesGuard = true
		case DoAwaitGuard:
			p.Guards = true
		case DoSync:
			p.guardSyncs = true
		case DoLoadLiteral, DoLookUpDirect:
			p.After = s
		}
		if mask >= 0 {
			p.masked |= 1 << phaseOf[s]
			if s == DoFetch {
				p.masked |= 1 << Inside
			}
		}
	}
	p.masked &^= 1 << Boundary // before the first step they are not masked yet
	if p.After == noStep {
		p.After = DoCall
	}
	switch {
	case at != DoCall:
		return wrong(len(steps)-1, "want it to end with %q", DoCall)
	case mask >= 0:
		return wrong(mask, "%s: nothing unmasks them", DoMask)
	}
	return nil
}

// maskAt follows one step that masks or unmasks interrupts.
func maskAt(i int, s PathStep, mask *int) *PathError {
	switch {
	case s == DoMask && i > 0:
		return wrong(i, "%s: want it first", s)
	case s == DoMask:
		*mask = i
		return nil
	case *mask < 0:
		return wrong(i, "%s: they are not masked", s)
	case *mask == i-1:
		return wrong(i, "%s: nothing is made with them masked", s)
	}
	*mask = -1
	return nil
}

// compileHandler takes a look-up, perhaps a reference around some of it, and an end;
// who only goes back need not look up.
func (p *Path) compileHandler(steps []PathStep) *PathError {
	var seen [numPathSteps]int // indexes, from 1
	before := noStep
	var phase Phase
	for i, s := range steps {
		if s == DoUnmask && i == 0 {
			p.Signals = true
			continue
		}
		switch {
		case s == DoUnmask:
			return wrong(i, "%s: want it first", s)
		case before.endsHandler():
			return wrong(i, "%s: the handler is over", s)
		case seen[s] > 0:
			return wrong(i, "%s: a second time", s)
		case s == DoGiveBack && seen[DoTakeReference] == 0:
			return wrong(i, "%s: no reference is taken before it", s)
		case (s == DoAct || s == DoSkip) && seen[DoLookUp] == 0:
			return wrong(i, "%s: the handler cannot tell whose breakpoint it is: no step before looks the address up", s)
		case before == DoSync && !s.endsHandler():
			return wrong(i, "%s: want the handler's end behind %q", s, DoSync)
		case s == DoGoBack && before != DoSync:
			return wrong(i, "%s: without %q before it the CPU could fetch the same breakpoint for ever", s, DoSync)
		}
		seen[s], before = i+1, s
		if s == DoSync {
			p.Syncs = true
			continue
		}
		to := phaseOf[s]
		if phase == 0 {
			p.trap = to
		}
		p.next[phase] = to
		phase = to
		if seen[DoLookUp] > 0 && s != DoLookUp {
			p.found |= 1 << phase
		}
		if seen[DoTakeReference] > 0 && s != DoTakeReference && seen[DoGiveBack] == 0 || s == DoGiveBack {
			p.holds |= 1 << phase
		}
	}
	p.next[Boundary] = 0
	p.refers, p.skips, p.GoesBack = seen[DoTakeReference] > 0, before == DoSkip, before == DoGoBack
	switch {
	case !before.endsHandler():
		return wrong(len(steps)-1, "want it to end with %q, %q or %q", DoAct, DoSkip, DoGoBack)
	case p.refers && seen[DoGiveBack] == 0:
		at := seen[DoTakeReference] - 1
		return wrong(at, "%s: no step gives it back: a patcher that waits for handlers would wait for ever", DoTakeReference)
	}
	return nil
}

// endsHandler tells whether nothing of the handler can follow the step.
func (s PathStep) endsHandler() bool { return s == DoAct || s == DoSkip || s == DoGoBack }

// compileMiss takes: look again, or not; then sync and go back, skip, or fatal.
func (p *Path) compileMiss(steps []PathStep) *PathError {
	synced := false
	for i, s := range steps {
		switch {
		case p.missed != noStep:
			return wrong(i, "%s: nothing follows %q", s, p.missed)
		case s == DoLookAgain && i == 0:
			p.again = true
		case s == DoLookAgain:
			return wrong(i, "%s: want it first", s)
		case s == DoSync && synced:
			return wrong(i, "%s: a second time", s)
		case s == DoSync:
			synced = true
		case s == DoGoBack && !p.again:
			return wrong(i, "%s: without %q a CPU would meet a breakpoint of no batch for ever", s, DoLookAgain)
		case s == DoGoBack && !synced:
			return wrong(i, "%s: without %q before it the CPU could fetch the same breakpoint for ever", s, DoSync)
		case synced && s != DoGoBack:
			return wrong(i, "%s: want %q behind %q", s, DoGoBack, DoSync)
		default:
			p.missed = s
		}
	}
	if p.missed == noStep {
		return wrong(len(steps)-1, "want it to end with %q, %q or %q", DoGoBack, DoSkip, DoFatal)
	}
	return nil
}

// Masks tells whether interrupts are held back at some border within a call.
func (p *Path) Masks() bool { return p.masked != 0 }

// Holds tells whether the handler holds a reference in a phase, so that patchers that wait for
// handlers wait for this CPU.
func (p *Path) Holds(ph Phase) bool { return p.holds>>ph&1 != 0 }

// reads tells whether some data names what a site calls.
func (p *Path) reads() bool {
	return p.Apart || p.Guards || p.After == DoLoadLiteral || p.After == DoLookUpDirect
}
