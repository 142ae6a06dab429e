// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// wayLength is how many steps of a way are drawn and counted: the rules look at pairs.
const wayLength = 3

// legal lists every program that a section may have, of a way those up to wayLength.
func legal(t *testing.T, in Section) (programs [][]PathStep) {
	t.Helper()
	base, err := ParseArch("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	native := NativePath(base.Traits(), base.Traits().FetchLen, false)
	if in == OnDown {
		if native, err = native.Replace(OnUp, DoComeOnline); err != nil {
			t.Fatal(err)
		}
	}
	var extend func(steps []PathStep)
	extend = func(steps []PathStep) {
		if len(steps) > maxProgram || in >= OnEntry && len(steps) > wayLength {
			return
		}
		if _, err := native.Replace(in, steps...); err == nil {
			programs = append(programs, slices.Clone(steps))
		}
		for _, s := range StepsOf(in) {
			if !slices.Contains(steps, s) {
				extend(append(steps, s))
			}
		}
	}
	extend(nil)
	return programs
}

// TestEveryLegalProgram counts the programs of each section by hand: a rule that is
// lost lets more of them in.
func TestEveryLegalProgram(t *testing.T) {
	for in, want := range [NumSections]int{
		// The fetch: alone, or with the literal or the direct call behind it, or with
		// the ops before it. Masked until any later border.
		// With a guard before it that is fetched or not, behind which it syncs or not.
		AtSite: 1 + 2 + 1 + (1 + 2*2 + 2) + 2*2*(1+2),
		// Act or skip, each with sync or without, or sync and back: the look-up alone, or
		// in one of three places about the reference. Back, with a reference or without.
		// A signal's is any of them with interrupts on.
		InHandler: 2 * ((2*2+1)*(1+3) + 2),
		// skip, fatal, each with a second look or without; back.
		OnMiss: 2*2 + 1,
		// Nothing; one of three; two of five but the pair that does neither say nor
		// fetch; any three; and one or two with a call before.
		OnEntry: 1 + 3 + (5*4 - 2) + 5*4*3 + 3 + (5*4 - 2),
		// Nothing; leave, with user space's page tables before it, behind it, or not.
		OnExit: 1 + 3,
		// Nothing; the call; with a look before it, or with one of seven before it or
		// behind it; the two together; with two of seven in any order; and "leave
		// again", which wants "enter" before it.
		OnNMI: 1 + 1 + (1 + 7*2) + 7*2 + 7*6/2*6 + 3,
		// Nothing; come online, with a call, a sync, or both, in any order.
		OnUp: 1 + 1 + 2*2 + 6,
		// Nothing; go offline, with a call behind it or without.
		OnDown: 1 + 2,
	} {
		programs := legal(t, Section(in))
		if len(programs) != want {
			t.Errorf("%s: %d programs, want %d: %.300v", Section(in), len(programs), want, programs)
		}
	}
}

// again reads a path's text.
func again(t *testing.T, steps [NumSections][]PathStep) {
	t.Helper()
	p, err := NewPath(steps)
	if err != nil {
		t.Fatal(err)
	}
	var got Path
	if err := got.UnmarshalBinary([]byte(p.String())); err != nil || got != p {
		t.Fatalf("%s\nread again: %v\n%s", p, err, got)
	}
}

// TestPathTexts: every path is what its text says.
func TestPathTexts(t *testing.T) {
	var sections [NumSections][][]PathStep
	for i := range sections {
		sections[i] = legal(t, Section(i))
	}
	for _, site := range sections[AtSite] {
		for _, handler := range sections[InHandler] {
			for _, miss := range sections[OnMiss] {
				for way := OnEntry; int(way) < NumSections; way++ {
					steps := [NumSections][]PathStep{site, handler, miss}
					list := sections[way]
					steps[way] = list[(len(site)*31+len(handler)*7+len(miss)*3+int(way))%len(list)]
					if way == OnDown {
						steps[OnUp] = []PathStep{DoComeOnline}
					}
					again(t, steps)
				}
			}
		}
	}
	for way := OnEntry; int(way) < NumSections; way++ {
		for _, program := range sections[way] {
			steps := [NumSections][]PathStep{sections[AtSite][0], sections[InHandler][0], sections[OnMiss][0]}
			steps[way] = program
			if way == OnDown {
				steps[OnUp] = []PathStep{DoComeOnline}
			}
			again(t, steps)
		}
	}
	for _, v := range allVariants() {
		p := Path{}.With(SiteCalls).With(HandlerActs).With(MissForgives).With(v)
		var got Path
		if err := got.UnmarshalBinary([]byte(p.String())); err != nil || got != p {
			t.Errorf("%v: %v\n%s", v, err, p)
		}
	}
	for s := noStep + 1; s < numPathSteps; s++ {
		if s.Does() == "" || s.String() == "" {
			t.Errorf("step %d is not explained", s)
		}
	}
}

// TestPathsRefused: what no CPU can do, or do to an end, is refused where it is wrong.
func TestPathsRefused(t *testing.T) {
	for _, c := range []struct {
		in          Section
		steps, want string
		at          int
	}{
		{AtSite, "fetch site", "want it to end with", 0},
		{AtSite, "call", "out of its order", 0},
		{AtSite, "fetch site; call; call", "the call is over", 2},
		{AtSite, "fetch site; fetch site; call", "out of its order", 1},
		{AtSite, "load ops; call", "out of its order", 1},
		{AtSite, "load ops; fetch site; load literal; call", "loaded already", 2},
		{AtSite, "load literal; fetch site; call", "out of its order", 0},
		{AtSite, "mask interrupts; load ops; fetch site; call", "nothing unmasks", 0},
		{AtSite, "load ops; mask interrupts; fetch site; unmask interrupts; call", "want it first", 1},
		{AtSite, "mask interrupts; unmask interrupts; fetch site; call", "nothing is made", 1},
		{AtSite, "fetch site; unmask interrupts; call", "not masked", 1},
		{InHandler, "take reference; look up; act", "no step gives it back", 0},
		{InHandler, "look up; give back; act", "no reference is taken", 1},
		{InHandler, "take reference; give back; act", "no step before looks", 2},
		{InHandler, "look up; sync", "want it to end", 1},
		{InHandler, "sync; look up; act", "want the handler's end", 1},
		{InHandler, "look up; act; skip", "is over", 2},
		{InHandler, "look up; look up; act", "a second time", 1},
		{OnMiss, "go back", "of no batch for ever", 0},
		{OnMiss, "look again; go back", "could fetch the same", 1},
		{OnMiss, "sync; look again; go back", "want it first", 1},
		{OnMiss, "look again; sync; skip", "behind", 2},
		{OnMiss, "fatal; skip", "nothing follows", 1},
		{OnMiss, "look again", "want it to end", 0},
		{OnEntry, "call a site", "want", 0},
		{OnEntry, "enter; call a site", "want it first", 1},
		{OnEntry, "enter; enter", "a second time", 1},
		{OnEntry, "load kernel cr3", "want", 0},
		{OnExit, "load user cr3", "never left out", 0},
		{OnNMI, "enter; sync", "makes no difference", 1},
		{OnNMI, "call a site; look at cr3", "want it first", 1},
		{OnNMI, "leave again; enter; call a site", "no \"enter\" before it", 0},
		{OnUp, "call a site", "no round would ever reach", 0},
		{OnDown, "call a site; go offline", "want \"go offline\" first", 0},
		{OnDown, "go offline; go offline", "a second time", 1},
		{OnDown, "go offline", "want a section \"online\"", 0},
	} {
		var steps []PathStep
		for text := range strings.SplitSeq(c.steps, "; ") {
			s, err := ParsePathStep(c.in, text)
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, s)
		}
		_, err := Path{}.With(SiteCalls).With(HandlerActs).With(MissForgives).Replace(c.in, steps...)
		var wrong *PathError
		if !errors.As(err, &wrong) || wrong.Section != c.in || wrong.At != c.at || !strings.Contains(wrong.Reason, c.want) {
			t.Errorf("%s: %s: %+v, want %q at %d", c.in, c.steps, wrong, c.want, c.at)
		}
	}
	for text, want := range map[string]string{
		"sight: call":                      "did you mean site",
		"site: fech site; call":            "did you mean fetch site",
		"site: act":                        `site "act"`,
		"site: call\nsite: call":           "line 2",
		"site: fetch site; call":           "handler: want it to end",
		"miss: fatal\nhandler: ; act":      `handler ""`,
		"entry: mask interrupts; catch up": "mask interrupts",
	} {
		if err := new(Path).UnmarshalBinary([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// allVariants lists all of them.
func allVariants() []Variant {
	return []Variant{
		SiteCalls, SiteCallOps, SiteApart, SiteApartMasked, SiteDirect, HandlerActs, HandlerActsStale, HandlerSkips,
		MissForgives, MissFatal, EntryCatchesUp, EntryEarly,
	}
}
