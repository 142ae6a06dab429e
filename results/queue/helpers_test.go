// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

var long = flag.Bool("long", false, "run slow tests")

// start starts a server of a queue in a directory, at a port that is free, or that it had
// before.
func start(t testing.TB, dir string, port int) *server.Server {
	t.Helper()
	return startWith(t, &server.Options{Host: "127.0.0.1", Port: port, StoreDir: dir})
}

func startWith(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.JetStream, o.NoSigs, o.NoLog, o.JetStreamMaxStore = true, true, true, 1<<30
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}

// alone is a server for one test.
func alone(t testing.TB) *server.Server {
	s := start(t, t.TempDir(), server.RANDOM_PORT)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func connect(t testing.TB, url string, o Options) *Queue {
	t.Helper()
	if o.Program == "" {
		o.Program = "1.0"
	}
	q, err := Connect(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

// squares are points that are made of their number, and of a file.
type squares struct {
	text  string        // the file's
	takes time.Duration // a point
	bad   int           // whose key is another, -1 for none
	done  *atomic.Int64 // how often a point was begun
	off   *atomic.Int64 // how often one was called off
}

func (s squares) Key(n int) (string, error) {
	if n == s.bad {
		return "bad", nil
	}
	return key(n), nil
}

func (s squares) Alone() bool { return false }

func (s squares) Do(ctx context.Context, n int) ([]byte, error) {
	s.done.Add(1)
	if s.takes > 0 {
		if err := sleep(ctx, s.takes); err != nil {
			s.off.Add(1)
			return nil, err
		}
	}
	return json.Marshal(fmt.Sprint(s.text, n*n))
}

func key(n int) string { return fmt.Sprintf("--n %d", n) }

func keys(n int) (all []string) {
	for i := range n {
		all = append(all, key(i))
	}
	return all
}

// want is what the points come to where nothing is between.
func want(n int, text string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d\n", text, i*i)
	}
	return b.String()
}

// team is workers of a test.
type team struct {
	Worker
	squares
}

func newTeam() *team {
	c := &team{squares: squares{bad: -1, done: new(atomic.Int64), off: new(atomic.Int64)}}
	c.Open = func(_ context.Context, _ Run, files map[string]string) (Points, error) {
		s := c.squares
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			s.text += string(text)
		}
		return s, nil
	}
	return c
}

// collect is all rows of a run, in their order.
func collect(ctx context.Context, r *Rows) (string, error) {
	var b strings.Builder
	for i := range r.keys {
		data, err := r.Await(ctx, i)
		if err != nil {
			return b.String(), err
		}
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return b.String(), err
		}
		b.WriteString(text + "\n")
	}
	return b.String(), nil
}

// forgotten waits until workers keep no files of a run. The test has a folder of its own for temporary files.
func forgotten(t testing.TB) {
	t.Helper()
	eventually(t, "workers have forgotten the run", func() bool {
		kept, err := filepath.Glob(filepath.Join(os.TempDir(), "textpoke-worker-*"))
		return err == nil && len(kept) == 0
	})
}

// left is how many messages the queue holds.
func left(t testing.TB, q *Queue) (jobs, rows uint64) {
	t.Helper()
	j, err1 := q.jobs.Info(t.Context())
	r, err2 := q.rows.Info(t.Context())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return j.State.Msgs, r.State.Msgs
}
