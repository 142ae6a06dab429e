package service_test

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestLinearizable lets clients at a server that is stopped and started again,
// with cancels, deadlines, stores that fail and CPUs that go and come: each
// history is one that the sequential model explains, restarts and all.
func TestLinearizable(t *testing.T) {
	lives, each := 6, 100*time.Millisecond
	if *long {
		lives, each = 100, time.Second
	}
	s, dir := newSeen(), t.TempDir()
	var mu sync.Mutex // two lives never overlap, but clients of one do
	for seed := range lives + 1 {
		l := &living{life: life{Dir: dir, Seed: uint64(seed), Again: s.lost}, out: func(x line) {
			mu.Lock()
			defer mu.Unlock()
			if err := s.hear(x); err != nil {
				t.Error(err)
			}
		}}
		if err := l.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seed < lives {
			ctx, cancel := context.WithTimeout(t.Context(), each)
			if err := l.work(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if err := l.machine.close(t.Context()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("in life %d of %d", seed, lives)
		}
	}
	ends := map[string]int{}
	for _, k := range s.ends {
		ends[k.State]++
	}
	t.Logf("%d lives, %d updates: %v", lives, len(s.ends), ends)
	for _, state := range []string{"live", "failed", "cancelled", "expired"} {
		if ends[state] == 0 {
			t.Errorf("no update ended as %s: this tried too little", state)
		}
	}
}
