// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// oneSite is a patcher that writes the one site of a paper on x86_64, and takes that back, for ever.
func oneSite(t *testing.T) (*Patcher, *paper) {
	t.Helper()
	p := shipped()["word"]
	g, patches := world(t, p, shapeOf(t, "x86_64", p, 1, false))
	menu := Menu{
		{From: 0, To: 1, Sites: 1, When: Guard{Old: 1}},
		{From: 1, To: 2, Sites: 1, Undo: true, When: Guard{New: 1}},
	}
	plan := []Step{{Op: Write, Part: Word, To: 1}, {Op: Write, Part: Word, Undo: true, To: 1}}
	return &Patcher{Code: g.code, Patches: patches, Plan: plan, Menu: menu, At: menu.Starts(plan)}, g
}

// TestMenu: a patcher that goes on for ever chooses what its site is ready for, and waits where that is nothing.
func TestMenu(t *testing.T) {
	p, g := oneSite(t)
	for n := range 4 {
		if !p.Between() || !p.Endless() {
			t.Fatalf("update %d: at step %d, not between two updates", n, p.At)
		}
		if status, err := p.Step(t.Context(), g, &cpus.Script{}); status != Ran || err != nil || p.At != n%2 {
			t.Fatalf("update %d: %v, %v: at step %d, want %d", n, status, err, p.At, n%2)
		}
		if _, err := p.Step(t.Context(), g, &cpus.Script{}); err != nil || !g.is(&p.Patches[0], n%2 == 1, false) {
			t.Fatalf("update %d: %v: the site holds %s", n, err, g.text[0].Format(5))
		}
	}
	g.text[0]++ // neither old nor new
	if status, err := p.Step(t.Context(), g, &cpus.Script{}); status != Waits || err != nil || !p.Between() {
		t.Errorf("%v, %v: chose step %d, and no update is ready", status, err, p.At)
	}
}

// TestFollows: an update follows one that leaves its sites as it wants them.
func TestFollows(t *testing.T) {
	on := &Choice{Sites: 1, When: Guard{Old: 1}}
	off := &Choice{Sites: 1, Undo: true, When: Guard{New: 1}}
	other := &Choice{Sites: 2, When: Guard{Old: 2}}
	some := &Choice{Sites: 2, Undo: true, When: Guard{New: 2, SomeNew: 1}}
	for _, c := range []struct {
		next, last *Choice
		want       bool
	}{
		{off, on, true}, {on, off, true}, {on, on, false}, {off, off, false}, {other, on, true}, {some, on, true},
		{some, off, false},
	} {
		if got := c.next.Follows(c.last); got != c.want {
			t.Errorf("%+v behind %+v: %v", *c.next, *c.last, got)
		}
	}
}
