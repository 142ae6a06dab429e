// SPDX-License-Identifier: Apache-2.0

package spelling

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	valid := []string{"Publish", "Unpublish", "WaitHandlers", "Write", "Sync"}
	if got := Nearest("", []string{"n"}); got != "" {
		t.Errorf("nothing was typed, and %q was meant", got)
	}
	for name, want := range map[string]string{
		"Pubish": "Publish", "publish": "Publish", "Unpublsh": "Unpublish", "Wait": "WaitHandlers",
		"Wirte": "Write", "sync": "Sync", "": "", "Quiesce": "", "Xy": "",
	} {
		if got := Nearest(name, valid); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestNotOneOf(t *testing.T) {
	if got, want := NotOneOf("wrod",
		[]string{"word", "pair"}).Error(), "not one of word, pair; did you mean word?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	many := append(make([]string, 100), "word")
	if got, want := NotOneOf("wrod", many).Error(), "not one of 101 names; did you mean word?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := NotOneOf("neither", []string{"word", "pair"}).Error(), "not one of word, pair"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNumber(t *testing.T) {
	names := []string{"table", "sorted"}
	if n, err := Number[uint8]("order", "sorted", names); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	want := `order "Sorted": not one of table, sorted; did you mean sorted?`
	if n, err := Number[uint8]("order", "Sorted", names); n != 0 || err == nil || err.Error() != want {
		t.Errorf("%d, %v, want %s", n, err, want)
	}
}

// TestLists: the first of several, and none; which, by several conditions, and how many; their sum, and that of none.
func TestLists(t *testing.T) {
	words := []string{"table", "sorted", "second", ""}
	s := func(word string) bool { return strings.HasPrefix(word, "s") }
	if First(words, s) != "sorted" || First(words[:1], s) != "" {
		t.Errorf("%q, %q", First(words, s), First(words[:1], s))
	}
	if Count(words, s) != 2 || Count(words[:1], s) != 0 {
		t.Errorf("%d, %d", Count(words, s), Count(words[:1], s))
	}
	long := func(word string) bool { return len(word) > 5 }
	if got := Where(words, s); !slices.Equal(got, []string{"sorted", "second"}) {
		t.Errorf("%q", got)
	}
	if got := Where(append(words, "sun"), long, s); !slices.Equal(got, []string{"sorted", "second"}) {
		t.Errorf("%q", got)
	}
	if got := Distinct(words, func(word string) int { return len(word) }); !slices.Equal(got, []int{5, 6, 0}) {
		t.Errorf("%d", got)
	}
	if got := Numbers(3); !slices.Equal(got, []int{0, 1, 2}) || len(Numbers(0)) != 0 {
		t.Errorf("%d", got)
	}
	if Sum([]int{3, -1, 5}) != 7 || Sum([]float64(nil)) != 0 {
		t.Errorf("%d, %g", Sum([]int{3, -1, 5}), Sum([]float64(nil)))
	}
}
