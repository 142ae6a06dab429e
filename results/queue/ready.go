// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// readyRuns is how many runs a worker keeps ready that it is not at.
const readyRuns = 2

// ready is a run whose points a worker can do.
type ready struct {
	id     string
	opened chan struct{} // closed when the rest is valid
	err    error
	points Points
	dir    string // of its files
	ctx    context.Context
	cancel context.CancelFunc

	s    *station
	uses int // guarded by the station's lock
	gone bool
}

// ready makes a run ready, once for all points of it.
func (s *station) ready(ctx context.Context, id string) (*ready, error) {
	s.mu.Lock()
	var r *ready
	if i := slices.IndexFunc(s.runs, func(r *ready) bool { return r.id == id && !r.gone }); i >= 0 {
		r = s.runs[i]
		s.runs = slices.Insert(slices.Delete(s.runs, i, i+1), 0, r)
		r.uses++
		s.mu.Unlock()
		select {
		case <-r.opened:
		case <-ctx.Done():
			r.release()
			return nil, ctx.Err()
		}
	} else {
		r = &ready{id: id, opened: make(chan struct{}), s: s, uses: 1}
		r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.runs = slices.Insert(s.runs, 0, r)
		s.mu.Unlock()
		if r.err = r.open(ctx); r.err != nil {
			s.mu.Lock()
			r.gone = true // the next one tries again
			s.mu.Unlock()
		}
		close(r.opened)
	}
	if r.err != nil {
		r.release()
		return nil, r.err
	}
	return r, nil
}

// open fetches what a run needs.
func (r *ready) open(ctx context.Context) error {
	s := r.s
	text, err := s.object(ctx, objectName(r.id, "about"))
	if err != nil {
		return err
	}
	var run Run
	if err := json.Unmarshal(text, &run); err != nil {
		return fmt.Errorf("its description: %w", err)
	}
	if run.id() != r.id || run.Program != s.Program {
		return fmt.Errorf("its description is that of run %s of textpoke %s: this is textpoke %s", run.id(), run.Program,
			s.Program)
	}
	if r.dir, err = os.MkdirTemp("", "textpoke-worker-*"); err != nil {
		return err
	}
	files := map[string]string{}
	for name, sum := range run.Inputs {
		text, err := s.object(ctx, objectName(r.id, sum))
		if err != nil {
			return err
		}
		path := filepath.Join(r.dir, sum+filepath.Ext(name))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		files[name] = path
	}
	r.points, err = s.Open(ctx, run, files)
	return err
}

// object is the contents of an object, whose checksum the client has verified. Without one,
// who has submitted the run has removed it.
func (s *station) object(ctx context.Context, name string) (text []byte, err error) {
	gone := false
	err = s.persist(ctx, func(ctx context.Context) error {
		text, err = s.files.GetBytes(ctx, name)
		if gone = errors.Is(err, jetstream.ErrObjectNotFound); gone {
			return nil
		}
		return err
	})
	if gone {
		return nil, errOver
	}
	return text, err
}

// release says that a point of the run is done. Runs that nothing is done of make room.
func (r *ready) release() {
	s := r.s
	s.mu.Lock()
	r.uses--
	var close []*ready
	idle := 0
	s.runs = slices.DeleteFunc(s.runs, func(r *ready) bool {
		if r.uses > 0 {
			return false
		}
		idle++
		if r.gone || idle > readyRuns {
			close = append(close, r)
			return true
		}
		return false
	})
	s.mu.Unlock()
	for _, r := range close {
		r.close()
	}
}

// over ends what is done of a run, and forgets it.
func (s *station) over(id string) {
	s.mu.Lock()
	var found *ready
	for _, r := range s.runs {
		if r.id == id && !r.gone {
			r.gone = true
			r.uses++
			r.cancel()
			found = r
		}
	}
	s.mu.Unlock()
	if found != nil {
		found.release()
	}
}

func (s *station) closeRuns() {
	for _, r := range s.runs {
		r.close()
	}
	s.runs = nil
}

func (r *ready) close() {
	r.cancel()
	if r.points != nil {
		r.points.Close()
	}
	if r.dir != "" {
		_ = os.RemoveAll(r.dir) // it is among temporary files
	}
}
