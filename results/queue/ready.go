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

// readyRuns is how many runs a worker keeps ready, the latest.
const readyRuns = 3

// ready is a run whose points a worker can do.
type ready struct {
	id     string
	opened chan struct{} // closed when the rest is valid
	err    error
	points Points
	ctx    context.Context // until the run is over
	cancel context.CancelFunc
}

// ready makes a run ready, once for all points of it.
func (s *session) ready(ctx context.Context, id string) (*ready, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.runs, func(r *ready) bool { return r.id == id })
	if i >= 0 {
		r := s.runs[i]
		s.mu.Unlock()
		select {
		case <-r.opened:
			return r, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r := &ready{id: id, opened: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.runs = slices.Insert(s.runs, 0, r)
	s.runs = s.runs[:min(len(s.runs), readyRuns)]
	s.mu.Unlock()
	if r.points, r.err = s.open(ctx, id); r.err != nil {
		s.over(id) // the next one tries again
	}
	close(r.opened)
	return r, r.err
}

// opened is a run whose points are ready; nil for another.
func (s *session) opened(id string) *ready {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		select {
		case <-r.opened:
			if r.id == id && r.err == nil {
				return r
			}
		default:
		}
	}
	return nil
}

// open fetches a run's files and makes its points ready; the points then need the files no more.
func (s *session) open(ctx context.Context, id string) (Points, error) {
	text, err := s.object(ctx, objectName(id, "about"))
	if err != nil {
		return nil, err
	}
	var run Run
	if err := json.Unmarshal(text, &run); err != nil {
		return nil, fmt.Errorf("its description: %w", err)
	}
	if run.id() != id || run.Program != s.Program {
		return nil, fmt.Errorf("its description is that of run %s of textpoke %s: this is textpoke %s", run.id(), run.Program,
			s.Program)
	}
	dir, err := os.MkdirTemp("", "textpoke-worker-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	files := map[string]string{}
	for name, sum := range run.Inputs {
		text, err := s.object(ctx, objectName(id, sum))
		if err != nil {
			return nil, err
		}
		files[name] = filepath.Join(dir, sum+filepath.Ext(name))
		if err := os.WriteFile(files[name], text, 0o600); err != nil {
			return nil, err
		}
	}
	return s.Open(ctx, run, files)
}

// object is the contents of an object, whose checksum the client has verified. Without one,
// who has submitted the run has removed it.
func (s *session) object(ctx context.Context, name string) (text []byte, err error) {
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

// over ends the work on a run, and forgets the run.
func (s *session) over(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = slices.DeleteFunc(s.runs, func(r *ready) bool {
		if r.id == id {
			r.cancel()
		}
		return r.id == id
	})
}
