// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"testing"
)

// TestMatch: of two who have seen the same, one changes it; while a change is on its way nobody
// can have seen what it will be.
func TestMatch(t *testing.T) {
	s := openIn(t, t.TempDir())
	set := func(match string, which ...int) (Update, error) {
		o := order("a", "", which...)
		o.Set, o.Match = true, match
		return s.Accept(o, func(Update) {})
	}
	nothing := s.Tag("a", "o")
	u, err := set(nothing, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set(nothing, 3); !errors.Is(err, ErrChanged) {
		t.Errorf("while another is on its way: %v", err)
	}
	u.State = Live
	if err := s.Answer([]Update{u}); err != nil {
		t.Fatal(err)
	}
	if _, err := set(nothing, 3); !errors.Is(err, ErrChanged) {
		t.Errorf("of what is no more: %v", err)
	}
	tag := s.Tag("a", "o")
	if u, err = set(tag, 2, 3); err != nil {
		t.Fatal(err)
	}
	u.State = Live
	if err := s.Answer([]Update{u}); err != nil {
		t.Fatal(err)
	}
	if w := s.WantsOf("a"); len(w) != 1 || len(w[0].Which) != 2 || w[0].Which[0] != 2 || w[0].Tag == tag {
		t.Errorf("%+v", w)
	}
	for _, tt := range []struct{ rec, n int }{{1, 0}, {3, 1}} {
		if w := s.WantedBy([]int{tt.rec}); len(w) != tt.n {
			t.Errorf("record %d: %+v", tt.rec, w)
		}
	}
}
