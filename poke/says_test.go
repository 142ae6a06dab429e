// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestErrorsSay: what failed, and how every site was left.
func TestErrorsSay(t *testing.T) {
	cause, back := errors.New("cause"), errors.New("no way")
	at := Step{Op: Write, Part: Tail, To: 2}
	for want, e := range map[string]*Error{
		"update did not begin: cause; every site is all old": {State: AllOld, Err: cause},
		"update failed at Write tail 0..1, patch 1: cause; every site is all old": {
			State: AllOld, Begun: true, Step: at, Patch: 1, Err: cause,
		},
		"update failed at Write tail 0..1, patch 1: cause; the way back failed too: no way; " +
			"what breakpoints are left stay findable": {State: Stuck, Begun: true, Step: at, Patch: 1, Err: cause, Back: back},
	} {
		if got := e.Error(); got != want || !errors.Is(e, cause) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p := shipped()["word"]
	_, err := p.Mutation("late-publish", shapeOf(t, "arm64", p, 1, true))
	if want := "mutation \"late-publish\": protocol word on arm64 has nothing of the kind; it offers "; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s...", err, want)
	}
	for text, want := range map[string]string{
		"Sync":            "Sync: want the number of the round",
		"Write bytes 1-x": `Write bytes 1-x: bytes "1-x"`,
		"Write bytes x-1": `Write bytes x-1: bytes "x-1"`,
	} {
		if _, err := ParseStep(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s...", err, want)
		}
	}
}

// TestOffers: a mutation is offered where there is something to break.
func TestOffers(t *testing.T) {
	offers := func(p *Protocol, s Shape, name string) bool {
		return slices.ContainsFunc(p.Mutations(s), func(m Mutation) bool { return m.Name == name })
	}
	p := shipped()["word"]
	s := shapeOf(t, "arm64", p, 2, true)
	for patchers, want := range []bool{false, false, true} {
		if s.Patchers = patchers; offers(p, s, "no-mutex") != want {
			t.Errorf("%d patchers: no-mutex is offered: %v", patchers, !want)
		}
	}
	s.Switch = true
	for src, want := range map[string]bool{
		steps("Write literal if literal", "Write word", "Sync 1"):                true,
		steps("Fence", "Write literal if literal", "Write word", "Sync 1"):       false,
		steps("StopMachine", "Write literal if literal", "Write word", "Resume"): false,
	} {
		if got := offers(parse(t, "x.plan", []byte(src)), s, "no-attach-fence"); got != want {
			t.Errorf("no-attach-fence is offered: %v, of\n%s", got, src)
		}
	}
}

// TestInPatch: a patcher is in the middle of a patch between its accesses to one.
func TestInPatch(t *testing.T) {
	p, g := oneSite(t)
	p.Menu, p.At, p.Plan = nil, 0, []Step{{Op: WaitHandlers, To: 1}}
	if p.InPatch() || p.Begun() || p.Clearing() {
		t.Errorf("before its first access: in a patch %v, begun %v, clearing %v", p.InPatch(), p.Begun(), p.Clearing())
	}
	for _, clearing := range []bool{false, true} {
		if _, err := p.Step(t.Context(), g, nil); err != nil || !p.InPatch() || !p.Begun() || p.Clearing() != clearing {
			t.Errorf("%v: in a patch %v, begun %v, clearing %v", err, p.InPatch(), p.Begun(), p.Clearing())
		}
	}
}
