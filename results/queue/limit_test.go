// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
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
