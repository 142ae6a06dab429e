// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/service/journal"
)

// TestCrowd lets clients want things, cancel, retry with their keys and have
// deadlines, while stores fail, CPUs come and go, and the service is closed in the
// middle and started again. In the end each client's records are what its own
// answers say, and every site of the text agrees.
func TestCrowd(t *testing.T) {
	w := newWorld(t)
	var stores atomic.Uint64
	w.Fault = func(st poke.Step, _ int32) error {
		if !st.Undo && stores.Add(1)%50 == 0 {
			return poke.ErrInjected
		}
		return nil
	}
	rounds, d := 3, 150*time.Millisecond
	if *long {
		rounds, d = 30, time.Second
	}
	const clients = 8
	crowd := make([]*customer, clients)
	for c := range crowd {
		crowd[c] = &customer{name: fmt.Sprint("c", c), rng: rand.New(rand.NewPCG(7, uint64(c))), wants: map[int]bool{}}
	}
	for range rounds {
		s, kill := w.start(t)
		var wg sync.WaitGroup
		for _, c := range crowd {
			wg.Go(func() { c.shop(t, s) })
		}
		wg.Go(func() {
			for s.Ready() == nil {
				if s.Plug(t.Context(), 1, false) == nil {
					_ = s.Plug(t.Context(), 1, true) // unless it has been closed
				}
				time.Sleep(time.Millisecond)
			}
		})
		time.Sleep(d)
		kill()
		wg.Wait()
	}
	w.Fault = nil
	s, _ := w.start(t)
	users := map[int]int{}
	for _, c := range crowd {
		c.settle(t, s)
		for rec := range c.wants {
			users[rec]++
		}
	}
	all, err := s.Records(t.Context(), RecordQuery{After: -1, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Users != users[r.Index] || r.Enabled != (r.Users > 0) {
			t.Errorf("record %d has %d users, want %d", r.Index, r.Users, users[r.Index])
		}
	}
	s.live.(*simulated).CheckAll(func(rec int) bool { return users[rec] > 0 }) // looked at when it is closed
	t.Logf("%d stores, %d updates, enabled %v", stores.Load(), s.Stats().Requests, slices.Sorted(maps.Keys(users)))
}

// customer is one client, which does one thing after the other.
type customer struct {
	name  string
	rng   *rand.Rand
	n     int
	wants map[int]bool // by what it was answered
	open  []asked      // accepted, or perhaps, and not answered yet
}

type asked struct {
	Request
	rec int
}

func (c *customer) shop(t *testing.T, s *Service) {
	for c.settle(t, s) {
		rec := c.rng.IntN(20)
		c.n++
		a := asked{Request{Client: c.name, Key: fmt.Sprint(c.n), Ops: "o", Enable: c.rng.IntN(2) == 0,
			Records: []string{fmt.Sprint("fn", rec)}}, rec}
		if c.rng.IntN(8) == 0 {
			a.Deadline = time.Now().Add(time.Millisecond)
		}
		c.open = append(c.open, a)
		u, err := s.Submit(t.Context(), a.Request)
		if err == nil && c.rng.IntN(8) == 0 {
			_, _ = s.Cancel(t.Context(), u.ID) // settle sees what came of it
		}
	}
}

// settle asks again what came of what it asked for, as a client does whose server
// has gone away, and tells whether the server is there.
func (c *customer) settle(t *testing.T, s *Service) bool {
	for len(c.open) > 0 {
		a := c.open[0]
		a.Deadline = time.Time{}
		u, err := s.Submit(t.Context(), a.Request)
		if err == nil {
			u, err = s.Wait(t.Context(), u.ID)
		}
		switch {
		case errors.Is(err, ErrClosed):
			return false
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
			return false
		case !u.State.Final():
			t.Errorf("%+v was waited for", u)
		case u.State == journal.Live && a.Enable:
			c.wants[a.rec] = true
		case u.State == journal.Live:
			delete(c.wants, a.rec)
		}
		c.open = c.open[1:]
	}
	return s.Ready() == nil
}
