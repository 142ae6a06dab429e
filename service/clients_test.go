// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"testing"
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
