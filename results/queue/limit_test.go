// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/textpoke/textpoke/results/points"
)

// lostOf is why a run's only point was lost.
func lostOf(t *testing.T, r *Rows) string {
	t.Helper()
	_, err := r.Await(t.Context(), 0)
	var lost *points.LostError
	if !errors.As(err, &lost) || lost.Key != key(0) {
		t.Fatalf("%v, want that the point was lost", err)
	}
	return lost.Why
}

// TestDeadly: a run whose opening is the death of every worker is lost after as many tries as may be, and not opened
// once more.
func TestDeadly(t *testing.T) {
	s := alone(t)
	o := Options{AckWait: 300 * time.Millisecond, Tries: 2}
	r := submit(t, connect(t, s.ClientURL(), o), 1)
	c := newTeam()
	for range o.Tries {
		q, died := connect(t, s.ClientURL(), o), make(chan struct{})
		c.Open = func(ctx context.Context, _ Run, _ map[string]string) (Points, error) {
			q.nc.Close() // nobody hears of it any more
			close(died)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		dismiss := startWorker(t, q, c)
		<-died
		dismiss()
	}
	c.Open = func(context.Context, Run, map[string]string) (Points, error) {
		t.Error("it was opened once more")
		return nil, errors.New("opened")
	}
	startWorker(t, connect(t, s.ClientURL(), o), c)
	if got, want := lostOf(t, r), "no worker came to an end with it: it was begun 2 times"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLimits: a point that takes more time or memory than it may is lost at once.
func TestLimits(t *testing.T) {
	for want, limit := range map[string]func(*Worker){
		"it took longer than 20ms": func(w *Worker) { w.Time = 20 * time.Millisecond },
		"it took more than 0 MiB":  func(w *Worker) { w.Memory = 1 },
		"it took longer than 30ms": func(w *Worker) { w.Time, w.Memory = 30*time.Millisecond, 1<<40 },
	} {
		s := alone(t)
		c := newTeam()
		c.takes = time.Hour
		limit(&c.Worker)
		startWorker(t, connect(t, s.ClientURL(), Options{}), c)
		if got := lostOf(t, submit(t, connect(t, s.ClientURL(), Options{}), 1)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if n := c.done.Load(); n != 1 {
			t.Errorf("it was begun %d times", n)
		}
	}
}

// TestWaiting: a worker that starts before the server waits for it, and says so once.
func TestWaiting(t *testing.T) {
	s := alone(t)
	port := s.Addr().(*net.TCPAddr).Port
	url := fmt.Sprintf("nats://127.0.0.1:%d", port)
	s.Shutdown()
	s.WaitForShutdown()
	told := 0
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, url, Options{Waiting: func() { told++ }}); !errors.Is(err, ErrNoServer) ||
		told != 1 {
		t.Errorf("%v, told %d times", err, told)
	}
	begun := make(chan *server.Server)
	q, err := Connect(t.Context(), url, Options{Waiting: func() {
		go func() { begun <- start(t, t.TempDir(), port) }()
	}})
	if err != nil {
		t.Fatal(err)
	}
	q.Close()
	again := <-begun
	again.Shutdown()
	again.WaitForShutdown()
}

// TestAccess: who does not say the word is refused at once, and not waited for.
func TestAccess(t *testing.T) {
	s := startWith(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: t.TempDir(), Authorization: "word"})
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	for token, fits := range map[string]bool{"word": true, "other": false, "": false} {
		q, err := Connect(t.Context(), s.ClientURL(), Options{Access: Access{Token: token}, Waiting: func() { t.Error("it waits") }})
		if (err == nil) != fits {
			t.Errorf("%q: %v", token, err)
		}
		if err == nil {
			q.Close()
		}
	}
}

// deadly are points of which one is the death of its worker, when others are at work beside it or none has come for a while.
type deadly struct {
	squares
	point int
	die   func()
	hands *atomic.Int64 // points at work
}

func (d deadly) Do(ctx context.Context, n int) ([]byte, error) {
	d.hands.Add(1)
	defer d.hands.Add(-1)
	if n != d.point {
		return d.squares.Do(ctx, n)
	}
	for end := time.Now().Add(time.Second / 2); d.hands.Load() < 4 && time.Now().Before(end); {
		_ = sleep(ctx, time.Millisecond)
	}
	d.die()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestInnocent: points that are at work beside one that kills its workers are done in the end; that one alone is lost.
func TestInnocent(t *testing.T) {
	s := alone(t)
	o := Options{AckWait: time.Second, Tries: 3}
	const points = 8
	r := submit(t, connect(t, s.ClientURL(), o), points)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range points {
			if _, err := r.Await(t.Context(), i); (err != nil) != (i == 0) {
				t.Errorf("point %d: %v", i, err)
			}
		}
	}()
	for deaths := 0; ; deaths++ {
		q, died := connect(t, s.ClientURL(), o), make(chan struct{})
		c := newTeam()
		c.Jobs, c.takes = 4, 200*time.Millisecond
		c.Open = func(context.Context, Run, map[string]string) (Points, error) {
			return deadly{c.squares, 0, sync.OnceFunc(func() { q.nc.Close(); close(died) }), new(atomic.Int64)}, nil
		}
		dismiss := startWorker(t, q, c)
		select {
		case <-died:
			dismiss()
		case <-over:
			if deaths == 0 || deaths > o.Tries {
				t.Errorf("%d workers died, want 1 to %d", deaths, o.Tries)
			}
			return
		}
	}
}
