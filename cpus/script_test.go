// SPDX-License-Identifier: Apache-2.0

package cpus_test

import (
	"fmt"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestScriptGivesEveryAnswer: three answers, and behind the last of them two times two, are
// six ways through, each once. Questions with one answer are none, stays in trampolines
// neither, and of a store's drain it only matters whether it waits.
func TestScriptGivesEveryAnswer(t *testing.T) {
	seen := map[string]int{}
	var s cpus.Script
	for more := true; more; more = s.Next() {
		first := s.Ask(3)
		if s.Ask(1) != 0 || s.Choose(cpus.ChooseLinger, 100) != 0 {
			t.Fatal("a question that has one answer got another")
		}
		if first == 2 {
			s.Choose(cpus.ChooseDrain, 4)
			s.Choose(cpus.ChooseVersion, 2)
		}
		seen[fmt.Sprint(s.Answers())]++
	}
	for _, want := range []string{"[0]", "[1]", "[2 0 0]", "[2 0 1]", "[2 1 0]", "[2 1 1]"} {
		if seen[want] != 1 {
			t.Errorf("%s was given %d times", want, seen[want])
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d ways, want 6: %v", len(seen), seen)
	}
}

// TestScriptFits: recorded answers fit where each is one to a question and none is left over.
func TestScriptFits(t *testing.T) {
	for _, c := range []struct {
		answers []uint8
		asked   []int
		fits    bool
	}{
		{nil, nil, true},
		{[]uint8{1, 2}, []int{2, 3}, true},
		{[]uint8{1, 2}, []int{2, 1, 3}, true},
		{[]uint8{1, 2}, []int{2}, false},
		{[]uint8{1}, []int{2, 2}, false},
		{[]uint8{2, 0}, []int{2, 2}, false},
	} {
		s := cpus.Repeat(c.answers)
		for _, n := range c.asked {
			if got := s.Ask(n); got >= n {
				t.Errorf("%v to questions with %v answers: %d of %d", c.answers, c.asked, got, n)
			}
		}
		if s.Fits() != c.fits {
			t.Errorf("%v fit questions with %v answers: %t", c.answers, c.asked, s.Fits())
		}
	}
}
