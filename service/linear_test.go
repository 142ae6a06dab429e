// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// TestLinearizable lets clients at a server that is stopped and started again,
// with cancels, deadlines, stores that fail and CPUs that go and come: each
// history is one that the sequential model explains, restarts and all.
func TestLinearizable(t *testing.T) {
	lives, each := 5, 100*time.Millisecond
	if *long {
		lives, each = 100, time.Second
	}
	s, dir := newSeen(), t.TempDir()
	n := 0
	for ; n < lives || !s.varied() && n < 20*lives; n++ {
		l := &living{life: life{Dir: dir, Seed: uint64(n), Again: s.again()}, out: func(x line) {
			if err := s.hear(x); err != nil {
				t.Error(err)
			}
		}}
		if err := l.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), each)
		if err := l.work(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := l.machine.close(t.Context()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("in life %d", n)
		}
	}
	t.Logf("%d lives, %d updates, as they ended: %v", n, len(s.ends), s.states())
	if !s.varied() {
		t.Error("updates did not end in all ways")
	}
}

// TestAskedAgainTooLate: a client that got no answer asks again with the same key,
// and hears what became of its update, although the deadline is over by then.
func TestAskedAgainTooLate(t *testing.T) {
	m := started(t, setup{dir: t.TempDir(), records: "gen:n=4", cpus: "busy=1,idle=1"})
	r := request("bpf", []string{"fn1"}, true)
	r.Key, r.Deadline = "k", time.Now().Add(time.Minute)
	u, err := m.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Wait(t.Context(), u.ID); err != nil {
		t.Fatal(err)
	}
	r.Deadline = time.Now().Add(-time.Minute)
	again, err := m.Submit(t.Context(), r)
	if err != nil || again.ID != u.ID || again.State != "live" {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	r.Key = "another"
	var field *service.FieldError
	if _, err := m.Submit(t.Context(), r); !errors.As(err, &field) || field.Field != "deadline" {
		t.Errorf("an update whose deadline is over: %v", err)
	}
}
