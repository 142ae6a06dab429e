// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"sync"
	"testing"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/service/journal"
)

// addsUp holds the parts of a status against each other, of a service that has had no
// more updates and batches than a status shows.
func addsUp(now Status) error {
	var ended, waiting, merged int
	for _, u := range now.Updates {
		if u.State.Final() {
			ended++
		} else {
			waiting++
		}
	}
	for _, b := range now.Batches {
		merged += b.Requests
	}
	var rounds, taken uint64
	for _, c := range now.CPUs {
		rounds += c.RoundsSent
		for _, n := range c.Taken {
			taken += n
		}
	}
	st := now.Stats
	for _, f := range []struct {
		name      string
		got, want uint64
	}{
		{"requests", st.Requests, uint64(ended)}, {"queued", uint64(st.Queued), uint64(waiting)},
		{"batches", st.Batches, uint64(len(now.Batches))}, {"merged", st.Merged, uint64(merged)},
		{"rounds", st.Rounds, rounds}, {"ipis", st.IPIs, taken},
	} {
		if f.got != f.want {
			return fmt.Errorf("%d %s, and the rest says %d: %+v", f.got, f.name, f.want, now)
		}
	}
	return nil
}

// TestStatusIsOneMoment: whenever somebody looks, what is counted is what is listed:
// while an update is carried out, while others wait, and after it; and what a restart
// makes live again is nobody's request.
func TestStatusIsOneMoment(t *testing.T) {
	w := newWorld(t)
	inside, on := make(chan struct{}), make(chan struct{})
	w.Fault = func(st poke.Step, patch int32) error {
		select {
		case inside <- struct{}{}:
			<-on
		default:
		}
		return nil
	}
	s, kill := w.start(t)
	look := func() Status {
		t.Helper()
		now, err := s.Status(t.Context())
		if err == nil {
			err = addsUp(now)
		}
		if err != nil {
			t.Error(err)
		}
		return now
	}
	look()
	first, err := s.Submit(t.Context(), enable("a", "fn1"))
	if err != nil {
		t.Fatal(err)
	}
	<-inside
	var ids []int64
	for i := range 3 {
		u, err := s.Submit(t.Context(), enable(fmt.Sprint("b", i), "fn2"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, u.ID)
	}
	counted := s.Stats()
	look()
	if counted.Queued != 4 || counted.Batches != 1 || counted.Requests != 0 {
		t.Errorf("one runs and three wait: %+v", counted)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				look()
			}
		}
	})
	close(on)
	for _, id := range append(ids, first.ID) {
		if u, err := s.Wait(t.Context(), id); err != nil || u.State != journal.Live {
			t.Errorf("%+v %v", u, err)
		}
	}
	for i := range 12 {
		do(t, s, enable("c", fmt.Sprint("fn", i)))
	}
	close(done)
	wg.Wait()
	if now := look(); now.Stats.Requests != 16 || now.Stats.Queued != 0 || now.Updates[0].ID != 16 {
		t.Errorf("%+v", now)
	}
	kill()
	s, _ = w.start(t)
	if now := look(); now.Stats.Requests != 0 || now.Stats.Batches != 0 || now.Stats.Updates != 1 {
		t.Errorf("after a restart: %+v", now.Stats)
	}
}
