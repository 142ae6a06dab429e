// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// twin interprets a path as its text says, with the answers that the tape gave, and
// writes down what it would have asked. It shares nothing with the table.
type twin struct {
	path   Path
	entry  uint64
	ops    []uint64
	noted  struct{ literal, peek, find, outcome, enter, leftOut []int }
	log    []string
	masked bool
	pair   bool
	event  Event
	broken Property
}

func (w *twin) ask(what string, answers *[]int) (a int) {
	w.log = append(w.log, what)
	if answers == nil || len(*answers) == 0 {
		return 0
	}
	a, *answers = (*answers)[0], (*answers)[1:]
	return a
}

// border is where interrupts are looked for; masked: before the step, and behind
// what may have changed that in between.
func (w *twin) border(masked bool) {
	if !masked {
		w.ask("pending", nil)
	}
}

// call interprets one call from the start on.
func (w *twin) call() {
	steps := w.path.Program(AtSite).Steps()
	var ops, target uint64
	first := slices.Index(steps, DoFetch)
	before, half := false, false
	for i := 0; i < len(steps); i++ {
		switch steps[i] {
		case DoMask:
			w.masked = true
			continue
		case DoUnmask:
			w.masked = false
			continue
		}
		w.border(before && w.masked)
		before = w.masked
		switch steps[i] {
		case DoLoadOps, DoLoadLiteral:
			ops = w.ops[w.ask("literal", &w.noted.literal)]
		case DoLookUpDirect:
			ops = w.ops[w.ask("literal", &w.noted.literal)]
		case DoFetchGuard:
			if !w.armed() {
				w.ask("seq", nil)
				i = slices.Index(steps, DoFetch) - 1
			}
		case DoAwaitGuard:
			syncs := steps[i+1] == DoSync
			for w.armed() {
				w.border(false)
			}
			if syncs {
				w.ask("seq", nil)
				i++
			}
		case DoFetch:
			text := fetchable[w.ask("fetch", &w.noted.peek)]
			switch text {
			case "breakpoint":
				end, to := w.handler()
				switch end {
				case DoGoBack:
					i, half = first-1, false
					continue
				case DoAct:
					text, target, half = "call", to, true
					if to == 0 {
						text = "nop"
					}
				case DoSkip:
					w.event = Untraced
					return
				default:
					return
				}
			case "call":
				target = w.entry
			case "other":
				target = w.ops[1]
			}
			if w.pair && !half {
				half = true
				i--
				continue
			}
			if text == "nop" {
				w.event = Untraced
				return
			}
			switch {
			case slices.Contains(steps, DoLoadOps):
				if target != w.entry && target != ops {
					w.event, w.broken = Broken, MismatchedOps
					return
				}
			case slices.Contains(steps, DoLookUpDirect) && target != w.entry:
				ops = target
				i = slices.Index(steps, DoCall) - 1
				w.masked = false
			case !slices.Contains(steps, DoLoadLiteral) && !slices.Contains(steps, DoLookUpDirect):
				ops = target
			}
		case DoCall:
			if w.event = Traced; w.ask("call", &w.noted.outcome) == int(CalledNobody) {
				w.event = Untraced
			}
		}
	}
}

// armed looks at the guard.
func (w *twin) armed() bool {
	w.ask("literal", &w.noted.literal)
	return w.ask("call", &w.noted.outcome) == int(CalledNobody)
}

// handler interprets the handler and what follows a miss.
func (w *twin) handler() (end PathStep, target uint64) {
	acts := []uint64{0, w.ops[0], w.ops[1]}
	found := -1
	steps := w.path.Program(InHandler).Steps()
	for i, s := range steps {
		switch s {
		case DoUnmask:
			w.border(false)
		case DoTakeReference:
			if w.ask("take reference", &w.noted.enter) == 0 {
				return w.miss(), 0
			}
		case DoLookUp:
			found = w.ask("look up", &w.noted.find)
		case DoGiveBack:
			w.ask("give back", nil)
		default:
			if found == len(acts) {
				return w.miss(), 0
			}
			if s == DoSync {
				w.ask("seq", nil)
			}
			switch steps[i] {
			case DoAct:
				return DoAct, acts[found]
			case DoSkip, DoGoBack:
				return steps[i], 0
			}
		}
	}
	return 0, 0
}

func (w *twin) miss() PathStep {
	there := w.ask("peek", &w.noted.peek) == 1
	for _, s := range w.path.Program(OnMiss).Steps() {
		switch s {
		case DoLookAgain:
			if there {
				w.event, w.broken = Broken, UnhandledBreakpoint
				return DoFatal
			}
		case DoSync:
			w.ask("seq", nil)
		case DoFatal:
			w.event, w.broken = Broken, UnhandledBreakpoint
			return DoFatal
		default:
			return s
		}
	}
	return noStep
}

// stay is what a twin interprets: one call, or a way and the calls behind it.
type stay uint8

const (
	aCall   stay = iota
	aKernel      // from user space into the kernel and back
	anNMI
	anNMIFromUser
	upwards   // from offline to online
	downwards // and back
)

// end interprets a stay.
func (w *twin) end(what stay) {
	switch what {
	case aCall:
		w.call()
	case aKernel:
		w.way(OnEntry, true)
		for range awakeCalls {
			w.call()
		}
		w.ask("leave kernel", nil) // in whichever step of the way out
	case anNMI, anNMIFromUser:
		w.way(OnNMI, what == anNMIFromUser)
	case upwards:
		w.ask("bring up", nil)
		w.ask("seq", nil)
		w.way(OnUp, false)
		w.ask("end hotplug", nil)
	case downwards:
		w.ask("take down", nil)
		w.way(OnDown, false)
		w.ask("end hotplug", nil)
	}
}

// way interprets a section that is a way, of a CPU that has come from user space or not.
func (w *twin) way(in Section, user bool) {
	steps := w.path.Program(in).Steps()
	across := user || steps[0] != DoLookAtCR3
	leftOut := true
	for _, s := range steps {
		switch {
		case s == DoCallEarly:
			w.call()
		case s == DoSync:
			w.ask("seq", nil)
		case !across:
		case s == DoEnter:
			leftOut = w.ask("enter kernel", &w.noted.leftOut) == 1
		case s == DoCatchUp && leftOut:
			w.ask("seq", nil)
		case s == DoAwaitResume && leftOut:
			w.ask("resumed", nil)
		case s == DoLeave || s == DoLeaveAgain:
			w.ask("leave kernel", nil)
		case s == DoComeOnline:
			w.ask("come online", nil)
		}
	}
}

// TestPathTwin: what a CPU asks of what is shared, step by step, is what its path's
// text says, on every kind of machine.
func TestPathTwin(t *testing.T) {
	var sections [NumSections][][]PathStep
	for i := range sections {
		sections[i] = legal(t, Section(i))
	}
	seen := map[Event]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			var steps [NumSections][]PathStep
			for i := range sections {
				steps[i] = rapid.SampledFrom(sections[i]).Draw(rt, Section(i).String())
			}
			if len(steps[OnUp]) == 0 {
				steps[OnDown] = nil
			}
			path, err := NewPath(steps)
			if err != nil {
				rt.Fatal(err)
			}
			seen[asTwin(t, rt, path)] = true
		}
	})
	for _, e := range []Event{Traced, Untraced, Broken} {
		if !seen[e] {
			t.Errorf("no call has ended as %q", e)
		}
	}
}

// stays are what a path lets a CPU do.
func stays(p *Path) []stay {
	list := []stay{aCall}
	if p.Tells {
		list = append(list, aKernel)
	}
	if p.NMIs {
		list = append(list, anNMI, anNMIFromUser)
	}
	if p.ComesUp {
		list = append(list, upwards)
	}
	if p.GoesDown {
		list = append(list, downwards)
	}
	return list
}

// asTwin lets a CPU make a call, or go a way, beside the twin.
func asTwin(t *testing.T, rt *rapid.T, path Path) (event Event) {
	pair := rapid.Bool().Draw(rt, "pair")
	f := newFixture(t, map[bool]string{false: "x86_64", true: "riscv64"}[pair], 1, busy(1), noHandler{}, Weak)
	code := *f.code
	code.Path = path
	ops := []uint64{uint64(code.Entry), uint64(code.Entry) + 4096}
	sh := &tape{t: rt, ops: ops, text: texts(rt, &code, pair), pair: pair}
	c, pad := CPU{Synced: 1}, NewScratchpad()
	what := rapid.SampledFrom(stays(&path)).Draw(rt, "stay")
	var under CPU
	switch what {
	case aKernel:
		c.Role, c.Phase = Isolated, Asleep
	case anNMIFromUser:
		c.cr3 = userCR3
		under = c.NMI()
	case anNMI:
		under = c.NMI()
	case upwards:
		c.PowerOff()
	}
	takes := enters{ChooseEnter}
	if what == downwards {
		takes.takes = ChooseDown
	}
	over := func() bool {
		switch what {
		case aKernel:
			return c.Phase == Asleep
		case anNMI, anNMIFromUser:
			return c.Over(&code)
		case upwards:
			return c.Phase == Boundary && c.way == AtSite
		case downwards:
			return c.Phase == Down
		}
		return c.Phase == Boundary
	}
	for n := 0; !pad.Found; n++ {
		if e := Step(&c, &code, sh, takes, pad); e != Nothing && e != Trap && e != Miss {
			event = e
		}
		if n > 0 && !c.polled && over() {
			break
		}
	}
	want := &twin{path: path, pair: pair, entry: uint64(code.Entry), ops: sh.ops, noted: sh.noted}
	got := sh.log
	if want.end(what); what != aCall { // who rests looks more often
		pending := func(s string) bool { return s == "pending" }
		got, want.log = slices.DeleteFunc(got, pending), slices.DeleteFunc(want.log, pending)
	}
	if pad.Found {
		want.log = want.log[:min(len(got), len(want.log))]
	}
	if !slices.Equal(got, want.log) {
		rt.Fatalf("%s\nasks %q\nwant %q", path, got, want.log)
	}
	if what == aCall && (event != want.event || pad.Found && pad.Violation.Property != want.broken) {
		rt.Fatalf("%s\n%s, %v; want %s, %s", path, event, pad.Violation, want.event, want.broken)
	}
	if c.Over(&code) {
		if c.Return(under); c.way != AtSite || c.Phase != Boundary || c.cr3 != under.cr3 {
			rt.Fatalf("%s\ngoes back to %+v, want %+v", path, c, under)
		}
	}
	return event
}

// enters is a Chooser that takes every way into the kernel, or offline.
type enters struct{ takes Choice }

// Choose implements Chooser.
func (e enters) Choose(what Choice, _ int) int { return map[Choice]int{e.takes: 1}[what] }
