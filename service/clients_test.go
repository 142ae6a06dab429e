// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// TestClientsAreBounded: names are not let in without end; those that are there go on,
// and one that wants nothing any more makes room.
func TestClientsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Clients = 3
	s, kill := w.start(t)
	for _, client := range []string{"a", "b", "c"} {
		do(t, s, enable(client, "fn1"))
	}
	for range 2 { // after a restart too
		if _, err := s.Submit(t.Context(), enable("d", "fn1")); !errors.Is(err, ErrTooManyClients) {
			t.Errorf("%v, want ErrTooManyClients", err)
		}
		do(t, s, enable("c", "fn2"))
		do(t, s, disable("d", "fn1"))
		kill()
		s, kill = w.start(t)
	}
	do(t, s, disable("c", "fn1", "fn2"))
	do(t, s, enable("d", "fn1"))
}

// TestCompactionLeavesTime: between its transactions it leaves the writer to others three
// times as long as it has kept it.
func TestCompactionLeavesTime(t *testing.T) {
	w := newWorld(t)
	w.Keep = journal.Keep{Updates: 1}
	pauses := 0
	w.Pause = func(_ context.Context, d time.Duration) {
		if pauses++; d <= 0 {
			t.Errorf("pause %d: %v", pauses, d)
		}
	}
	s, _ := w.start(t)
	for range 3 {
		do(t, s, enable("a", "fn1"))
	}
	if n, err := s.Compact(t.Context()); err != nil || n != 2 || pauses == 0 {
		t.Errorf("%d removed, %v, %d pauses", n, err, pauses)
	}
}
