// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/textpoke/textpoke/service"
)

// beat is how often a silent stream says that it is alive, for what lies in
// between and for the detection of clients that have vanished.
const beat = 15 * time.Second

// burst is how many events are written before they are sent off.
const burst = 256

// events streams what happens. A reader that falls behind is cut off by the
// service, and one that does not take what is written by the deadline: both
// resume with Last-Event-ID.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	after := p.number("after", 0, 0, math.MaxInt64)
	if last := r.Header.Get("Last-Event-Id"); last != "" {
		after = p.parse("Last-Event-ID", last, 0, math.MaxInt64)
	}
	if err := p.check(); err != nil {
		return err
	}
	if h.streams.Add(1) > int64(h.cfg.Limits.Streams) {
		h.streams.Add(-1)
		return errStreams
	}
	defer h.streams.Add(-1)
	keepOpen(w)
	backlog, live, cancel, gap := h.running.Load().service.Events(after)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s := &stream{w: w, out: http.NewResponseController(w), patience: h.cfg.Limits.Write}
	for err := s.begin(backlog, gap); err == nil; {
		err = s.next(live, r.Context().Done(), h.stopped)
	}
	return nil // the client has gone, or is too slow, or is cut off: none of it is a failure here
}

var errEnded = errors.New("the stream has ended")

// stream writes events to one reader.
type stream struct {
	w        io.Writer
	out      *http.ResponseController
	patience time.Duration
}

// begin writes what has happened already.
func (s *stream) begin(backlog []service.Event, gap bool) error {
	if err := s.extend(); err != nil {
		return err
	}
	if gap {
		if _, err := io.WriteString(s.w, "event: gap\ndata: {}\n\n"); err != nil {
			return err
		}
	}
	for i := range backlog {
		if i%burst == burst-1 {
			if err := s.flush(); err != nil {
				return err
			}
		}
		if err := s.write(&backlog[i]); err != nil {
			return err
		}
	}
	return s.flush()
}

// next waits for events, and sends those off that are there by then.
func (s *stream) next(live <-chan service.Event, gone <-chan struct{}, stopped <-chan struct{}) error {
	alive := time.NewTimer(beat)
	defer alive.Stop()
	select {
	case <-gone:
		return errEnded
	case <-stopped:
		return errEnded
	case <-alive.C:
		if err := s.extend(); err != nil {
			return err
		}
		if _, err := io.WriteString(s.w, ": still here\n\n"); err != nil {
			return err
		}
		return s.flush()
	case e, ok := <-live:
		if err := s.extend(); err != nil {
			return err
		}
		for n := 1; ok; n++ {
			if err := s.write(&e); err != nil {
				return err
			}
			if n == burst || len(live) == 0 {
				return s.flush()
			}
			e, ok = <-live
		}
		_ = s.flush() // it is cut off
		return errEnded
	}
}

func (s *stream) write(e *service.Event) error {
	b, err := json.Marshal(newEvent(e))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, b)
	return err
}

// extend gives the reader time for what is written next.
func (s *stream) extend() error { return s.deadline(time.Now().Add(s.patience)) }

func (s *stream) deadline(at time.Time) error {
	if err := s.out.SetWriteDeadline(at); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func (s *stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.deadline(time.Time{}) // HTTP/2 ends a stream whose deadline passes, though nothing is written
}
