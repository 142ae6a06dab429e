// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results/queue"
	"github.com/textpoke/textpoke/sim"
)

// crew does the points of a command, each of which comes to a T: this process, or workers
// that take them from a queue.
type crew[T any] interface {
	do(ctx context.Context, n int) (T, error)
}

// here is this process.
type here[T any] func(ctx context.Context, n int) (T, error)

func (h here[T]) do(ctx context.Context, n int) (T, error) { return h(ctx, n) }

// away is workers.
type away[T any] struct{ *submitted }

func (a away[T]) do(ctx context.Context, n int) (made T, err error) {
	data, err := a.rows.Await(ctx, n)
	if err != nil {
		return made, err
	}
	var p parcel[T]
	if err := json.Unmarshal(data, &p); err != nil {
		return made, fmt.Errorf("queue: point %d: %w", n, err)
	}
	switch {
	case p.Error == "":
	case p.No:
		err = noError{errors.New(p.Error)}
	default:
		err = errors.New(p.Error)
	}
	return p.Made, err
}

// parcel is what a point came to, on its way through a queue.
type parcel[T any] struct {
	Made  T      `json:"made"`
	Error string `json:"error,omitempty"` // why it came to nothing more
	No    bool   `json:"no,omitempty"`    // the error is the answer no
}

// work is the points of a command, for whoever does them.
type work struct {
	keys  []string
	alone bool // nothing may run beside a point
	// do is what a point comes to, a parcel.
	do func(ctx context.Context, n int) ([]byte, error)
}

// parcels makes parcels of what points come to. What was cut short is none.
func parcels[T any](do func(ctx context.Context, n int) (T, error)) func(context.Context, int) ([]byte, error) {
	return func(ctx context.Context, n int) ([]byte, error) {
		made, err := do(ctx, n)
		switch {
		case sim.Stopped(err):
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		p := parcel[T]{Made: made}
		if err != nil {
			p.Error, p.No = err.Error(), errors.Is(err, errNo)
		}
		return json.Marshal(p)
	}
}

// queued tells whether workers do the points, or this is one of them.
func (c *common) queued() bool { return c.queue != "" || c.employ != nil }

// refuseQueued refuses flags that do not go with --queue.
func (c *common) refuseQueued(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); c.queued() && f != nil && f.Changed {
			return fmt.Errorf("--%s goes without --queue", name)
		}
	}
	return nil
}

// submitted is a command's points, on their way through a queue.
type submitted struct {
	c    *common
	q    *queue.Queue
	rows *queue.Rows
	stop func()
}

// submit puts points into the queue that are not done.
func (c *common) submit(ctx context.Context, keys []string, done func(n int) bool) (*submitted, error) {
	q, err := c.connect(ctx, queue.Options{})
	if err != nil {
		return nil, err
	}
	rows, err := q.Submit(ctx, queue.Submission{Args: rowArgs(c.args), Keys: keys, Inputs: c.inputs, Done: done})
	if err != nil {
		q.Close()
		return nil, err
	}
	s := &submitted{c: c, q: q, rows: rows}
	s.stop = s.watch(ctx)
	return s, nil
}

// leaveTime is how long it may take to take points back from a queue.
const leaveTime = 20 * time.Second

// end takes from the queue what nobody needs any more: all of the run where it is complete,
// otherwise the jobs alone.
func (s *submitted) end(ctx context.Context, complete bool) error {
	s.stop()
	s.summary()
	defer s.q.Close()
	defer s.rows.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if complete {
		return s.rows.Finish(ctx)
	}
	return s.rows.Leave(ctx)
}

// watch tells people how far the workers are, until it is stopped.
func (s *submitted) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w := crewWatch{submitted: s, since: time.Now(), told: map[string]bool{}}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			w.look()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// crewWatch is what people are told of workers.
type crewWatch struct {
	*submitted
	since time.Time // when workers were last there
	told  map[string]bool
}

// noWorkers is how long nobody is told that there are no workers.
const noWorkers = 10 * time.Second

func (w *crewWatch) look() {
	s := w.rows.State()
	for _, line := range append(s.Refused, s.Trouble...) {
		w.tell(line)
	}
	if len(s.Workers) > 0 || s.Done == s.Points {
		w.since = time.Now()
	} else if time.Since(w.since) >= noWorkers {
		w.tell("no worker: start some with textpoke worker --queue " + addressFlag{&w.c.queue}.String())
	}
	if !w.c.stderrIsTerminal() {
		return
	}
	line := fmt.Sprintf("%d of %d points, %d workers", s.Done, s.Points, len(s.Workers))
	if s.Longest.Took >= time.Second {
		line += fmt.Sprintf(", %v at %s on %s", s.Longest.Took.Truncate(time.Second), s.Longest.Key, s.Longest.Worker)
	}
	w.c.overwrite(line)
}

// tell tells a line, once.
func (w *crewWatch) tell(line string) {
	if !w.told[line] {
		w.told[line] = true
		fmt.Fprintf(w.c.streams.err, "textpoke: queue: %s\n", line)
	}
}

// summary says who has done it, where somebody has.
func (s *submitted) summary() {
	state := s.rows.State()
	line := fmt.Sprintf("textpoke: queue: %d of %d points by %d workers", state.Done, state.Points, s.rows.Seen())
	if state.Found > 0 {
		line += fmt.Sprintf(", %d of them from before", state.Found)
	}
	if state.Slowest.Took > 0 {
		line += fmt.Sprintf("; the slowest took %v on %s: %s", state.Slowest.Took.Round(time.Millisecond),
			state.Slowest.Worker, state.Slowest.Key)
	}
	fmt.Fprintln(s.c.streams.err, line)
}

// processName is this process, for people.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
