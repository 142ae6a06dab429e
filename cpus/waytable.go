// SPDX-License-Identifier: Apache-2.0

package cpus

import "slices"

// The rules of the ways: what is wrong with a section, at which step.

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
	p.tells = len(steps) > 0
	if err := once(steps, true); err != nil || !p.tells {
		return err
	}
	for _, s := range []PathStep{DoEnter, DoCatchUp, DoSync} {
		if slices.Contains(steps, s) {
			return nil
		}
	}
	return wrong(len(steps)-1, "want %q or %q behind it", DoEnter, DoCatchUp)
}

// compileExit takes "leave", and the page tables before it or behind it.
func compileExit(steps []PathStep) *PathError {
	if err := once(steps, false); err != nil || len(steps) == 0 {
		return err
	}
	if !slices.Contains(steps, DoLeave) {
		return wrong(len(steps)-1, "want %q: a CPU that never says so is never left out", DoLeave)
	}
	return nil
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
	if !slices.Contains(steps, DoCallEarly) {
		return wrong(len(steps)-1, "want %q: an interrupt that calls nothing makes no difference", DoCallEarly)
	}
	return nil
}

// compileUp takes "come online", and the others before it or behind it.
func compileUp(steps []PathStep) *PathError {
	if err := once(steps, false); err != nil || len(steps) == 0 {
		return err
	}
	if !slices.Contains(steps, DoComeOnline) {
		return wrong(len(steps)-1, "want %q: no round would ever reach the CPU", DoComeOnline)
	}
	return nil
}
