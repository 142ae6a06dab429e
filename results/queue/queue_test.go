// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/textpoke/textpoke/internal/choice"
)

// startWorker lets a worker do points until the test ends, or stop is called.
func startWorker(t testing.TB, q *Queue, c *team) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		if err := q.Work(ctx, c.Worker); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); working.Wait() }
	t.Cleanup(stop)
	return stop
}

// submit submits points that must be done.
func submit(t testing.TB, q *Queue, n int, inputs ...string) *Rows {
	t.Helper()
	r, err := q.Submit(t.Context(), Submission{Request: choice.Request{Name: "square"}, Keys: keys(n), Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// complete collects rows, which must be right, and ends the run, of which nothing is left.
func complete(t *testing.T, r *Rows, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := collect(ctx, r)
	if err != nil || got != want(len(r.keys), text) {
		t.Errorf("%v\n%.1000s", err, got)
	}
	eventually(t, "every job was taken from the queue", func() bool { jobs, _ := left(t, r.q); return jobs == 0 })
	info, err := r.q.rows.Info(t.Context())
	if n := uint64(len(r.keys)); err != nil || info.State.Msgs != n || info.State.LastSeq != n {
		t.Errorf("%v: %d rows, the last is number %d, of %d points", err, info.State.Msgs, info.State.LastSeq, n)
	}
	if err := r.Finish(t.Context()); err != nil {
		t.Error(err)
	}
	if jobs, rows := left(t, r.q); jobs != 0 || rows != 0 {
		t.Errorf("%d jobs and %d rows are left", jobs, rows)
	}
	if objects, err := r.q.files.List(t.Context()); !errors.Is(err, jetstream.ErrNoObjectsFound) {
		t.Errorf("%v: files are left: %v", err, objects)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(until) {
			t.Fatal("in twenty seconds: ", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRun: rows are those of a loop, in their order, a point is done once, and nothing is
// left behind.
func TestRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	before := goleak.IgnoreCurrent() // clients that were killed leave goroutines in nats.go
	t.Cleanup(func() {
		// nats.go 1.55 leaves a goroutine that waits for ever where a file is in the store before
		// it has begun: CleanupPublisher has taken its channel away by then.
		goleak.VerifyNone(t, before, goleak.IgnoreTopFunction(
			"github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"))
	})
	s := alone(t)
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const n = 100
	c := newTeam()
	c.Jobs = 3
	a := startWorker(t, connect(t, s.ClientURL(), Options{Name: "a"}), c)
	b := startWorker(t, connect(t, s.ClientURL(), Options{Name: "b"}), c)
	r := submit(t, connect(t, s.ClientURL(), Options{}), n, file)
	complete(t, r, "x")
	if done := c.done.Load(); done != n {
		t.Errorf("%d points were done, of %d", done, n)
	}
	if s := r.State(); s.Done != n || s.Points != n || s.Found != 0 || s.Slowest.Took <= 0 || len(s.Refused) != 0 {
		t.Errorf("state %+v", s)
	}
	forgotten(t)
	a()
	b()
}

// TestKilledWorker: what it was at is done by another one, and every point has one row.
func TestKilledWorker(t *testing.T) {
	s := alone(t)
	o := Options{AckWait: 200 * time.Millisecond}
	c := newTeam()
	c.Jobs, c.takes = 2, 5*time.Millisecond
	r := submit(t, connect(t, s.ClientURL(), o), 40)
	victim := connect(t, s.ClientURL(), Options{Name: "victim", AckWait: o.AckWait})
	startWorker(t, victim, c)
	eventually(t, "it is at work", func() bool { return r.State().Done > 3 })
	victim.nc.Close() // nobody hears of it again
	begun := c.done.Load()
	if begun >= 40 {
		t.Fatalf("%d points were done: nothing is left", begun)
	}
	startWorker(t, connect(t, s.ClientURL(), Options{Name: "heir", AckWait: o.AckWait}), c)
	complete(t, r, "")
}

// TestNotice: a point that takes longer than a job may be silent is done once.
func TestNotice(t *testing.T) {
	s := alone(t)
	o := Options{AckWait: 150 * time.Millisecond}
	c := newTeam()
	c.takes = 400 * time.Millisecond
	for _, o.Name = range []string{"a", "b"} {
		startWorker(t, connect(t, s.ClientURL(), o), c)
	}
	r := submit(t, connect(t, s.ClientURL(), o), 2)
	eventually(t, "it is seen at work", func() bool { return r.State().Longest.Key != "" })
	complete(t, r, "")
	if done := c.done.Load(); done != 2 {
		t.Errorf("2 points were done %d times", done)
	}
}

// TestRowIsThere: a worker that died behind its row and before its acknowledgement costs
// nothing, and a point that was done twice has the first row.
func TestRowIsThere(t *testing.T) {
	s := alone(t)
	o := Options{Name: "dead", AckWait: 200 * time.Millisecond}
	r := submit(t, connect(t, s.ClientURL(), o), 3)
	dead := &session{Queue: connect(t, s.ClientURL(), o)}
	if err := dead.consume(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := dead.consumer.Next()
	if err != nil {
		t.Fatal(err)
	}
	var j job
	if err := json.Unmarshal(m.Data(), &j); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strconv.Itoa(j.Point * j.Point), "second"} {
		if err := dead.row(t.Context(), &j, outcome{Data: []byte(`"` + text + `"`)}); err != nil {
			t.Error(err)
		}
	}
	c := newTeam()
	startWorker(t, connect(t, s.ClientURL(), o), c)
	complete(t, r, "")
	if done := c.done.Load(); done != 2 {
		t.Errorf("2 points were left to do, and %d were done", done)
	}
}

// TestGoesOn: who has submitted a run may die, or leave, and find it again.
func TestGoesOn(t *testing.T) {
	s := alone(t)
	c := newTeam()
	q := connect(t, s.ClientURL(), Options{})
	for range 2 {
		submit(t, q, 30).Close() // killed
		if jobs, _ := left(t, q); jobs != 30 {
			t.Errorf("%d jobs of 30 points", jobs)
		}
	}
	dismiss := startWorker(t, connect(t, s.ClientURL(), Options{}), c)
	eventually(t, "all rows are there", func() bool { _, rows := left(t, q); return rows == 30 })
	dismiss()
	if done := c.done.Load(); done != 30 {
		t.Errorf("30 points were done %d times", done)
	}
	r := submit(t, q, 30)
	if s := r.State(); s.Found != 30 {
		t.Errorf("state %+v", s)
	}
	if err := r.Leave(t.Context()); err != nil { // interrupted
		t.Error(err)
	}
	if jobs, rows := left(t, q); jobs != 0 || rows != 30 {
		t.Errorf("%d jobs and %d rows are left", jobs, rows)
	}
	complete(t, submit(t, q, 30), "")

	c.done.Store(0)
	c.takes = time.Hour
	startWorker(t, connect(t, s.ClientURL(), Options{Name: "b"}), c)
	r = submit(t, q, 30)
	eventually(t, "one has begun", func() bool { return c.done.Load() == 1 })
	if err := r.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	if jobs, _ := left(t, q); jobs != 0 {
		t.Errorf("%d jobs are left that nobody wants", jobs)
	}
	eventually(t, "it was called off", func() bool { return c.off.Load() == 1 })
	r = submit(t, q, 30) // which a queue that remembers the jobs for minutes would not have
	eventually(t, "one has begun again", func() bool { return c.done.Load() == 2 })
	if err := r.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRefused: a worker of another version takes nothing, and both sides are told.
func TestRefused(t *testing.T) {
	s := alone(t)
	c, told := newTeam(), make(chan string, 10)
	c.Log = func(line string) { told <- line }
	other := newTeam()
	other.Log = c.Log
	r := submit(t, connect(t, s.ClientURL(), Options{}), 3)
	startWorker(t, connect(t, s.ClientURL(), Options{Name: "old", Program: "0.9"}), other)
	line := "worker old is textpoke 0.9, and takes nothing of what textpoke 1.0 submits"
	if got := <-told; got != line {
		t.Errorf("told %q", got)
	}
	eventually(t, "who submits is told", func() bool { return slices.Equal(r.State().Refused, []string{line}) })
	startWorker(t, connect(t, s.ClientURL(), Options{Name: "new"}), c)
	complete(t, r, "")
	if n := other.done.Load(); n != 0 {
		t.Errorf("the other one has done %d", n)
	}
}

// TestLarge: a row that has no room in a message.
func TestLarge(t *testing.T) {
	s := alone(t)
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startWorker(t, connect(t, s.ClientURL(), Options{}), newTeam())
	complete(t, submit(t, connect(t, s.ClientURL(), Options{}), 2, file), text)
}

// TestLost: a point that comes to nothing ends the run with the reason, and is done again
// when it is submitted again.
func TestLost(t *testing.T) {
	s := alone(t)
	o := Options{Name: "w", AckWait: 300 * time.Millisecond, Tries: 2}
	c := newTeam()
	c.bad = 1
	broken := true
	open := c.Open
	var mu sync.Mutex
	c.Open = func(ctx context.Context, r Run, files map[string]string) (Points, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return nil, errors.New("no room")
		}
		return open(ctx, r, files)
	}
	startWorker(t, connect(t, s.ClientURL(), o), c)
	q := connect(t, s.ClientURL(), o)
	lost := func(want string) {
		t.Helper()
		r := submit(t, q, 2)
		if _, err := collect(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := r.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	}
	lost(": begun 2 times: no room")
	mu.Lock()
	broken = false
	mu.Unlock()
	lost(`--n 1: worker w has "bad" there`)
}
