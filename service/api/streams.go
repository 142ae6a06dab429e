// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/service"
)

// beat is how often a silent stream says that it is alive, for what lies in
// between and for the detection of clients that have vanished.
const beat = 15 * time.Second

// pace is how long a stream waits between two pieces.
const pace = 20 * time.Millisecond

// share is how much of one core all streams together take, however many there are and however often they are opened: the
// rest is for updates. A stream whose turn comes late falls behind, and is told so.
const share = 0.05

// turns lets streams send their pieces one after the other.
type turns struct {
	next chan time.Time // before which no piece is sent; a stream takes it while it waits for that
	cost atomic.Int64   // of a piece in nanoseconds, a running mean
}

func newTurns() *turns {
	t := &turns{next: make(chan time.Time, 1)}
	t.next <- time.Time{}
	return t
}

// pass lets the next stream in, after what a piece costs.
func (t *turns) pass(now time.Time) { t.next <- now.Add(time.Duration(float64(t.cost.Load()) / share)) }

// took notes what a piece cost; one whose reader was waited for is no measure.
func (t *turns) took(cost time.Duration) {
	mean := t.cost.Load()
	t.cost.Store(mean + (min(int64(cost), int64(time.Millisecond))-mean)/8)
}

// events streams the machine's events, in pieces. A reader that falls behind is told how many
// events it missed. A reader that does not take its bytes by the deadline is cut off, and resumes
// with Last-Event-ID.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	after := p.number("after", 0, 0, math.MaxInt64)
	if last := r.Header.Get("Last-Event-Id"); last != "" {
		after = p.parse("Last-Event-ID", last, 0, math.MaxInt64)
	}
	kinds, client, renew := p.list("kind"), p.string("client"), p.bool("renew")
	for _, kind := range kinds {
		if !slices.Contains(service.EventKinds(), service.EventKind(kind)) {
			p.fail("kind", "%.40q: there is no such kind of events", kind)
		}
	}
	if renew && client == "" {
		p.fail("client", "is missing: renew says whose leases go on")
	}
	if err := p.check(); err != nil {
		return err
	}
	if renew { // a route lets readers in who may not ask for updates of a client
		a := w.(*answer)
		if err := h.allowed(route{path: a.route, access: Own}, r, a); err != nil {
			return err
		}
		if err := mine(w, client); err != nil {
			return err
		}
	}
	return h.streamed(w, r, "text/event-stream", func(out *pieces) error {
		from := h.running.Load().service.Events(after)
		s := &stream{pieces: out, from: from, gone: r.Context().Done(), stopped: h.stopped.Done(), ended: from.Ended(),
			kinds: kinds, client: client, turns: h.turns, alive: time.NewTicker(beat)}
		defer s.alive.Stop()
		defer h.attend(renew, client)()
		for err := s.out.Flush(); err == nil; err = s.next() { // the head at once: who comes and goes has no turn
		}
		return nil // the client has gone, or is too slow, or is cut off: none of it is a failure here
	})
}

// attend renews a client's leases, where that is asked for, until the function that it returns is called.
func (h *Handler) attend(renew bool, client string) func() {
	if !renew {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { h.running.Load().service.Attend(ctx, client) })
	return func() {
		cancel()
		ended.Wait()
	}
}

// streamed answers with a stream, of which there are only so many at a time.
func (h *Handler) streamed(w http.ResponseWriter, r *http.Request, kind string, run func(*pieces) error) error {
	if h.streams.Add(1) > int64(h.cfg.Limits.Streams) {
		h.streams.Add(-1)
		return errStreams
	}
	defer h.streams.Add(-1)
	keepOpen(w)
	w.Header().Set("Content-Type", kind)
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	text := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(text)
	return run(&pieces{w: w, out: http.NewResponseController(w), patience: h.cfg.Limits.Write, text: text})
}

// buffers are kept for streams that come: a thousand a second would have the garbage collector at work all the time.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

var errEnded = errors.New("the stream has ended")

// pieces are what a stream sends, one after the other.
type pieces struct {
	w        http.ResponseWriter
	out      *http.ResponseController
	patience time.Duration
	text     *bytes.Buffer // the next piece, over what was sent before
}

// stream writes events to one reader.
type stream struct {
	*pieces
	from                 *service.Reader
	gone, stopped, ended <-chan struct{}
	events               []*service.Event
	kinds                []string // nil: all
	client               string   // whose updates; "": everybody's
	turns                *turns
	alive                *time.Ticker
}

// piece sends what there is, as much as a reader gets at a time.
func (s *stream) piece() error {
	defer func(from time.Time) { s.turns.took(time.Since(from)) }(time.Now())
	s.text.Reset()
	if missed := s.from.Gap(); missed != 0 {
		gap, err := json.Marshal(Gap{max(missed, 0)})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.text, "event: gap\ndata: %s\n\n", gap)
	}
	s.events = s.from.Read(s.events[:0])
	for _, e := range s.events {
		wanted := (s.kinds == nil || slices.Contains(s.kinds, string(e.Kind))) &&
			(s.client == "" || e.Update == nil || e.Update.Client == s.client)
		if !wanted {
			continue
		}
		text, err := e.Text(encodeEvent)
		if err != nil {
			return err
		}
		s.text.Write(text)
	}
	if s.text.Len() == 0 {
		return nil
	}
	return s.send()
}

// encodeEvent is an event as every stream sends it.
func encodeEvent(e *service.Event) ([]byte, error) {
	text := bytes.NewBuffer(make([]byte, 0, 256)) // most have less
	fmt.Fprintf(text, "id: %d\nevent: %s\ndata: ", e.ID, e.Kind)
	err := jsonv2.MarshalWrite(text, e, jsonv1.DefaultOptionsV1()) // half of what encoding/json takes
	text.WriteString("\n\n")
	return text.Bytes(), err
}

// next sends the next piece, once there is more and it is the stream's turn.
func (s *stream) next() error {
	if _, err := await(s, time.After(pace)); err != nil {
		return err
	}
	if _, err := await(s, s.from.More()); err != nil {
		return err
	}
	if err := s.turn(); err != nil {
		return err
	}
	return s.piece()
}

// turn waits until it is the stream's turn. One that ends before has had none.
func (s *stream) turn() error {
	at, err := await(s, s.turns.next)
	if err != nil {
		return err
	}
	if _, err := await(s, time.After(time.Until(at))); err != nil {
		s.turns.next <- at
		return err
	}
	s.turns.pass(time.Now())
	return nil
}

// await waits for something as long as the stream is open, and says now and then that it is alive.
func await[T any](s *stream, what <-chan T) (v T, err error) {
	for {
		select {
		case v = <-what:
			return v, nil
		case <-s.gone:
			return v, errEnded
		case <-s.stopped:
			return v, errEnded
		case <-s.ended:
			return v, errEnded
		case <-s.alive.C:
			s.text.Reset()
			s.text.WriteString(": still here\n\n")
			if err := s.send(); err != nil {
				return v, err
			}
		}
	}
}

// send writes the piece, and gives the reader its time for it.
func (s *pieces) send() error {
	if err := s.deadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	if _, err := s.w.Write(s.text.Bytes()); err != nil {
		return err
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.deadline(time.Time{}) // HTTP/2 ends a stream whose deadline passes, though nothing is written
}

func (s *pieces) deadline(at time.Time) error {
	if err := s.out.SetWriteDeadline(at); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// TraceLine is a line of a trace, or what is missing before the next.
type TraceLine struct {
	service.Line
	Missed int `json:"missed,omitempty"` // lines of this client's that were left out: it reads too slowly
}

// trace streams the lines of a client's functions and events.
func (h *Handler) trace(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	client, ops, format, renew := p.string("client"), p.string("ops"), p.string("format"), p.bool("renew")
	if format != "" && format != "json" && format != "text" {
		p.fail("format", "%v", spelling.NotOneOf(format, []string{"json", "text"}))
	}
	if client == "" {
		p.fail("client", "is missing")
	}
	if err := p.check(); err != nil {
		return err
	}
	if err := mine(w, client); err != nil {
		return err
	}
	kind, write := "application/x-ndjson", traceJSON
	if format == "text" {
		kind = "text/plain; charset=utf-8"
		write = func(out *bytes.Buffer, l *service.Line, _ int) { out.WriteString(l.Text + "\n") }
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.stopped, cancel)()
	return h.streamed(w, r, kind, func(out *pieces) error {
		defer h.attend(renew, client)()
		err := h.running.Load().service.Trace(ctx, client, ops, func(lines []service.Line, missed int) error {
			out.text.Reset()
			for i := range lines {
				write(out.text, &lines[i], 0)
			}
			if missed > 0 {
				text := fmt.Sprintf("# %d lines are missing: they are read too slowly", missed)
				write(out.text, &service.Line{Text: text}, missed)
			}
			err := out.send()
			if err != nil {
				cancel()
			}
			return err
		})
		if ctx.Err() != nil { // the client has gone, or is too slow, or is cut off
			return nil
		}
		return err
	})
}

func traceJSON(out *bytes.Buffer, l *service.Line, missed int) {
	b, err := json.Marshal(TraceLine{*l, missed})
	if err != nil { // the types rule it out
		panic(err)
	}
	out.Write(append(b, '\n'))
}
