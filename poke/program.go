// SPDX-License-Identifier: Apache-2.0

package poke

import "slices"

// Life is how a tracer's life is told as one program.
type Life struct {
	Patches int  // all that it changes
	Settles bool // the protocol ends with the promise that no CPU executes replaced text; see Protocol.Settles
	// text_mutex is held while text is changed, unless the plan takes it itself, and ftrace_lock while an ops is got rid
	// of
	Locked bool
	// Fenced: a fence makes an ops visible before text can name it. Registering a tracer
	// takes and gives back ftrace_lock (register_ftrace_function), and what maps text to
	// write to it ends in a barrier: dsb(ishst) in set_pte (arch/arm64/include/asm/pgtable.h).
	Fenced bool
}

// Toggle is a tracer's whole life: its ops is attached, the plan enable makes all
// sites call it, the plan disable (of the same patches, compiled as if they were
// the other way round) takes that back, and the ops is released.
func (l Life) Toggle(enable, disable []Step) []Step {
	return append(l.Update(enable, false, true, false), l.Update(disable, true, false, true)...)
}

// Update is one update of many: the plan, with its promise; undo: of the same patches,
// compiled as if they were the other way round. attach: the ops that it leads to is
// attached before; release: nothing is left that leads to the other one, which is
// released.
func (l Life) Update(plan []Step, undo, attach, release bool) (out []Step) {
	if attach {
		out = append(out, l.around(Attach, undo))
		if l.Fenced {
			out = append(out, Step{Op: Fence})
		}
	}
	if undo {
		plan = Backwards(plan)
	}
	return append(out, l.change(plan, undo, release)...)
}

// Switch exchanges one ops for another: the new one is attached, the plan makes
// all sites call it, and the old one is released.
func (l Life) Switch(plan []Step) []Step {
	return l.Update(plan, false, true, true)
}

// change is a plan and what is around it; release: it gets rid of an ops.
func (l Life) change(plan []Step, undo, release bool) (out []Step) {
	if !l.Locked {
		out = append(out, plan...)
		if l.Settles {
			out = append(out, l.around(Settle, undo))
		}
		if release {
			out = append(out, l.around(Release, undo))
		}
		return out
	}
	text, grace := plan, []Step(nil)
	if n := len(plan); n > 0 && plan[n-1].Op == GracePeriod {
		text, grace = plan[:n-1], plan[n-1:]
	}
	if !takes(plan, TextMutex) {
		text = slices.Concat([]Step{{Op: Lock, Mutex: TextMutex}}, text, []Step{{Op: Unlock, Mutex: TextMutex}})
	}
	// The promise is made before another patcher can change the same sites.
	for i := len(text) - 1; ; i-- {
		if text[i].Op == Unlock && text[i].Mutex == TextMutex {
			out = append(out, text[:i]...)
			if l.Settles {
				out = append(out, l.around(Settle, undo))
			}
			out = append(out, text[i:]...)
			break
		}
	}
	if release {
		out = append(out, Step{Op: Lock, Mutex: FtraceLock})
		out = append(out, grace...)
		out = append(out, l.around(Release, undo), Step{Op: Unlock, Mutex: FtraceLock})
	}
	return out
}

// takes tells whether a plan takes a lock itself.
func takes(plan []Step, m Mutex) bool {
	return slices.ContainsFunc(plan, func(s Step) bool { return s.Op == Lock && s.Mutex == m })
}

// around is a step about all patches.
func (l Life) around(op Op, undo bool) Step {
	return Step{Op: op, Undo: undo, To: int32(l.Patches)}
}

// Backwards is a plan with old and new text exchanged.
func Backwards(plan []Step) []Step {
	out := make([]Step, len(plan))
	for i, s := range plan {
		s.Undo = s.Undo != s.Op.undoes()
		out[i] = s
	}
	return out
}
