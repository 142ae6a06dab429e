// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/results/points"
	"github.com/textpoke/textpoke/results/queue"
)

// addresses is the kind of a queue's addresses. Their text leaves out names and tokens.
var addresses = choice.Kind[string]{
	Type: "address", Format: withoutUser,
	Parse: func(text string) (string, error) {
		for one := range strings.SplitSeq(text, ",") {
			u, err := url.Parse(one)
			if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
				return "", errors.New("want nats://HOST:PORT")
			}
		}
		return text, nil
	},
}

// withoutUser is addresses without what stands before an @, which may be a token.
func withoutUser(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if u, err := url.Parse(one); err == nil && u.User != nil {
			u.User = url.User("xxxxx")
			all[i] = u.String()
		}
	}
	return strings.Join(all, ",")
}

// accessFlags is what a queue's servers ask for: files, as arguments can be seen by everybody on the machine.
type accessFlags struct{ token, credentials, ca, cert, key string }

// maxSmall bounds files of tokens, of certificates, and of a kernel's configuration, in bytes.
const maxSmall = 1 << 20

// addQueue adds the flags of a queue.
func addQueue(cmd *cobra.Command, c *common, usage string) {
	add(cmd, choice.One(&c.queue, "queue", "", usage+": `nats://HOST:PORT`, or several with commas between them", addresses))
	declare(cmd, "queue", &c.access)
}

// queueFlags are the flags of how a queue is reached, which rows do not depend on.
var queueFlags = []string{"queue", "token-file", "credentials", "tls-ca", "tls-cert", "tls-key"}

// connect connects to the queue. With waiting, it waits for a server.
func (c *common) connect(ctx context.Context, o queue.Options) (*queue.Queue, error) {
	a := c.access
	o.Program, o.Name = programOf(built), processName()
	o.Access = queue.Access{Credentials: a.credentials, CA: a.ca, Cert: a.cert, Key: a.key}
	if a.token != "" {
		text, err := inputs.Read(a.token, maxSmall)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if o.Access.Token = strings.TrimSpace(string(text)); o.Access.Token == "" {
			return nil, fmt.Errorf("--token-file %s: it is empty", a.token)
		}
	}
	q, err := queue.Connect(ctx, c.queue, o)
	if errors.Is(err, queue.ErrNoServer) {
		return nil, noServer{fmt.Errorf("--queue: %w", err)}
	}
	if err != nil {
		return nil, fmt.Errorf("--queue: %w", err)
	}
	return q, nil
}

// notDone is the answer no where points were lost, after a list of them.
func (c *common) notDone(lost []*points.LostError, all int) error {
	if len(lost) == 0 {
		return nil
	}
	for _, l := range lost {
		fmt.Fprintf(c.streams.err, "textpoke: not done: %v\n", l)
	}
	return noError{fmt.Errorf("%d of %d points were not done", len(lost), all)}
}

// queued tells whether workers do the points, or this is one of them.
func (c *common) queued() bool { return c.queue != "" || c.cores > 0 }

// submitted is a command's points, on their way through a queue.
type submitted struct {
	c    *common
	q    *queue.Queue
	rows *queue.Rows
	stop func()
}

// submit puts the points that are not done into the queue; nil where there is no queue, or nothing to do.
func submit[T any](ctx context.Context, c *common, all *points.Sweep[T], kept points.Keeper[T]) (*submitted, error) {
	done := func(n int) (had bool) {
		if kept != nil {
			_, had = kept.Have(n)
		}
		return had
	}
	left := 0
	for n := range all.Keys {
		if !done(n) {
			left++
		}
	}
	if c.queue == "" || left == 0 {
		return nil, nil
	}
	q, err := c.connect(ctx, queue.Options{})
	if err != nil {
		return nil, err
	}
	rows, err := q.Submit(ctx, queue.Submission{Request: c.asked.Without(ofProcess...), Keys: all.Keys, Inputs: c.inputs, Done: done})
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

// end clears the queue: of all of the run where it is complete, otherwise of the jobs alone.
func (s *submitted) end(ctx context.Context, complete bool) error {
	if s == nil {
		return nil
	}
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
		w := workerWatch{submitted: s, since: time.Now(), told: map[string]bool{}}
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

// workerWatch tells people about workers, each line once.
type workerWatch struct {
	*submitted
	since time.Time // when workers were last there
	told  map[string]bool
}

// noWorkers is how long a run waits for workers before it says that there are none.
const noWorkers = 10 * time.Second

func (w *workerWatch) look() {
	s := w.rows.State()
	for _, line := range append(s.Refused, s.Trouble...) {
		w.tell(line)
	}
	if len(s.Workers) > 0 || s.Done == s.Points {
		w.since = time.Now()
	} else if time.Since(w.since) >= noWorkers {
		w.tell("no worker: start some with textpoke worker --queue " + withoutUser(w.c.queue))
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
func (w *workerWatch) tell(line string) {
	if !w.told[line] {
		w.told[line] = true
		fmt.Fprintf(w.c.streams.err, "textpoke: queue: %s\n", line)
	}
}

// summary says how many workers did how many points.
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
