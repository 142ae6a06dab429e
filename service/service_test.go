package service

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/service/store"
)

// TestLiveStaysLive: what was answered as live is live after a restart.
func TestLiveStaysLive(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	if u := do(t, s, enable("a", "fn1", "fn2")); u.State != store.Live || u.Batch != 1 || u.Records != 2 {
		t.Errorf("%+v", u)
	}
	do(t, s, enable("b", "fn2", "fn3"))
	do(t, s, disable("a", "fn2"))
	want := []int{1, 2, 3}
	if got := enabled(t, s); !slices.Equal(got, want) {
		t.Errorf("enabled are %v, want %v", got, want)
	}
	kill()
	s, _ = w.start(t)
	if got := enabled(t, s); !slices.Equal(got, want) {
		t.Errorf("after a restart %v are enabled, want %v", got, want)
	}
	do(t, s, disable("b", "fn2"))
	if got := enabled(t, s); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("enabled are %v, want 1 and 3", got)
	}
}
