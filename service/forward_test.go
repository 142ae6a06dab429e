// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync"
	"testing"

	"github.com/textpoke/textpoke/service/journal"
)

// TestStatesGoForward: who has seen an update run does not see it wait again, though
// it ends in the middle of the look; neither by itself nor in a list.
func TestStatesGoForward(t *testing.T) {
	for name, look := range map[string]func(*Service, int64) (Update, error){
		"by itself": func(s *Service, id int64) (Update, error) { return s.Update(t.Context(), id) },
		"in a list": func(s *Service, id int64) (Update, error) {
			all, err := s.Updates(t.Context(), Query{After: id - 1})
			return all[0], err
		},
		"by its key": func(s *Service, _ int64) (Update, error) {
			r := enable("a", "fn1")
			r.Key = "key"
			return s.Submit(t.Context(), r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs, goOn := make(chan struct{}), make(chan struct{})
			var s *Service
			var u Update
			var once sync.Once
			var armed bool
			w.At = func(point string) {
				switch {
				case point == BeforeApply:
					runs <- struct{}{}
					<-goOn
				case point == DuringLook && armed:
					once.Do(func() { // it ends now
						close(goOn)
						if _, err := s.Wait(t.Context(), u.ID); err != nil {
							t.Error(err)
						}
					})
				}
			}
			s, _ = w.start(t)
			r := enable("a", "fn1")
			r.Key = "key"
			var err error
			if u, err = s.Submit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			<-runs
			if now, err := look(s, u.ID); err != nil || now.State != journal.Running {
				t.Fatalf("%+v, %v, want it running", now, err)
			}
			armed = true
			if now, err := look(s, u.ID); err != nil || now.State != journal.Running && now.State != journal.Live {
				t.Errorf("%+v, %v, and it was running before", now, err)
			}
		})
	}
}
