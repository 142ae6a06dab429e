// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/textpoke/textpoke/results/points"
)

// rowsOf is a run of three points whose submitter has gone, so that nothing is asked of the queue.
func rowsOf(q *Queue) *Rows {
	r := &Rows{q: q, id: "r", run: Run{Program: "1.0"}, keys: keys(3), mark: "mark", known: make([]bool, 3),
		waiting: map[int]outcome{},
		changed: make(chan struct{}),
		workers: workers{map[string]beat{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}}
	r.life, r.stop = context.WithCancel(context.Background())
	r.stop()
	return r
}

// TestTake: a row counts once, for its own point, with who did it and how long it took; one that cannot be read, or
// that is of another point, is lost, and one that was lost when the run was submitted before is no row.
func TestTake(t *testing.T) {
	row := func(o outcome) string {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	good := row(outcome{Key: key(1), Worker: "w", Nanos: 5, Data: []byte("7")})
	for i, c := range []struct {
		subject, text string
		n             int // the point, -1 for none
		why           string
		seen          int
	}{
		{"textpoke.row.r.1", good, 1, "", 1}, {"textpoke.row.r.3", good, -1, "", 0}, {"textpoke.row.r.-1", good, -1, "", 0},
		{"textpoke.row.r.x", good, -1, "", 0}, {"textpoke.row.r.0", good, 0, `worker w has done "--n 1"`, 1},
		{"textpoke.row.r.2", "{", 2, "what a worker has sent cannot be read: unexpected end of JSON input", 0},
		{"textpoke.row.r.1", row(outcome{Key: key(1), Lost: "why", Mark: "mark"}), 1, "why", 0},
		{"textpoke.row.r.1", row(outcome{Key: key(1), Lost: "why", Mark: "another"}), -1, "", 0},
	} {
		r := rowsOf(&Queue{Options: Options{AckWait: time.Hour}})
		changed := r.changed
		r.take(c.subject, []byte(c.text))
		r.take(c.subject, []byte(strings.Replace(c.text, `"nanos":5`, `"nanos":9`, 1))) // the first one counts
		came := false
		select {
		case <-changed:
			came = true
		default:
		}
		s := r.State()
		if came != (c.n >= 0) || came != (s.Done == 1) || s.Points != 3 || r.Seen() != c.seen ||
			len(r.failed) > 0 != (c.why != "") {
			t.Errorf("%d: %+v, seen %d, failed %v", i, s, r.Seen(), r.failed)
		}
		if c.n < 0 {
			continue
		}
		data, err := r.Await(t.Context(), c.n)
		var lost *points.LostError
		if errors.As(err, &lost) != (c.why != "") || lost != nil && lost.Why != c.why ||
			c.why == "" && string(data) != "7" {
			t.Errorf("%d: %s, %v, want %s", i, data, err, c.why)
		}
		if want := (Slow{Key: key(1), Worker: "w", Took: 5}); c.seen == 1 && s.Slowest != want {
			t.Errorf("%d: the slowest is %+v", i, s.Slowest)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Await(gone, c.n); !errors.Is(err, context.Canceled) {
			t.Errorf("%d: a row comes twice: %v", i, err)
		}
	}
	r := rowsOf(&Queue{})
	for n, nanos := range []int64{5, 5, 4} {
		r.take(rowSubject("r", n), []byte(row(outcome{Key: key(n), Worker: "w", Nanos: nanos})))
	}
	if r.slowest.Key != key(0) {
		t.Errorf("the slowest is %+v, want the first of two", r.slowest)
	}
}

// TestHear: workers of this program are listed while they give notice, with the point of this run that has taken
// longest, and what they could not do of it.
func TestHear(t *testing.T) {
	r := rowsOf(&Queue{Options: Options{AckWait: 30 * time.Hour}}) // an hour between two notices
	hear := func(b beat) {
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		r.hear(&nats.Msg{Data: text})
	}
	hear(beat{Worker: "b", Program: "1.0",
		Busy: []begun{{"other", "x", 99}, {"r", "k1", 5}, {"r", "k2", 7}, {"r", "k3", 7}}})
	hear(beat{Worker: "a", Program: "1.0", Trouble: trouble{"r", "why"}})
	hear(beat{Worker: "c", Program: "1.0", Trouble: trouble{"other", "whatever"}})
	hear(beat{Worker: "gone", Program: "1.0"})
	hear(beat{Worker: "gone", Program: "1.0", Ends: true})
	hear(beat{Worker: "silent", Program: "1.0"})
	silent := r.workers.all["silent"]
	silent.at = time.Now().Add(-5*time.Hour - time.Minute)
	r.workers.all["silent"] = silent
	late := r.workers.all["c"]
	late.at = time.Now().Add(-5*time.Hour + time.Minute)
	r.workers.all["c"] = late
	r.hear(&nats.Msg{Data: []byte("{")})
	s := r.State()
	if !slices.Equal(s.Workers, []string{"a", "b", "c"}) || !slices.Equal(s.Trouble, []string{"a: why"}) ||
		r.Seen() != 5 {
		t.Errorf("%+v, %d seen", s, r.Seen())
	}
	if s.Longest != (Slow{"k2", "b", 7}) || s.Done != 0 || s.Points != 3 {
		t.Errorf("%+v", s)
	}
}

// TestTended: a job that was lost is published again, and a row that its submitter was not told of is found.
func TestTended(t *testing.T) {
	o := Options{Name: "w", AckWait: 50 * time.Millisecond}
	q := connect(t, alone(t).ClientURL(), o)
	r := submit(t, q, 2)
	if err := q.jobs.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both jobs are there again", func() bool { jobs, _ := left(t, q); return jobs == 2 })
	r.consume.Stop()
	<-r.consume.Closed()
	s := &session{Queue: q}
	if err := s.row(t.Context(), &job{Run: r.id, Point: 1, Key: key(1)}, outcome{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if data, err := r.Await(t.Context(), 1); err != nil || string(data) != "1" {
		t.Errorf("%s, %v", data, err)
	}
}

// TestOnlyItsOwn: a run that is finished takes its own files, jobs and rows with it, and no other's; what cannot be
// read or removed is told.
func TestOnlyItsOwn(t *testing.T) {
	q := connect(t, alone(t).ClientURL(), Options{})
	one, other := submit(t, q, 1), submit(t, q, 2)
	for _, r := range []*Rows{one, other} {
		err := (&session{Queue: q}).row(t.Context(), &job{Run: r.id, Key: key(0)}, outcome{Data: []byte("0")})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Finish(t.Context()); err != nil {
		t.Error(err)
	}
	jobs, rows := left(t, q)
	objects, err := q.files.List(t.Context())
	if jobs != 2 || rows != 1 || err != nil || len(objects) != 1 || objects[0].Name != objectName(other.id, "about") {
		t.Errorf("%d jobs, %d rows and %v are left, %v", jobs, rows, objects, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{"finish": other.Finish(gone), "leave": other.Leave(gone)} {
		if err == nil || !strings.HasPrefix(err.Error(), "queue: ") || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = q.Submit(gone, Submission{Keys: keys(1)})
	if err == nil || !strings.HasPrefix(err.Error(), "queue: ") || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	_, err = q.Submit(t.Context(), Submission{Keys: keys(1), Inputs: []string{missing}})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	r, err := q.Submit(t.Context(), Submission{Keys: keys(3), Done: func(n int) bool { return n == 1 }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if s := r.State(); s.Done != 1 || s.Found != 0 {
		t.Errorf("%+v, and one is done already", s)
	}
	if jobs, _ := left(t, q); jobs != 4 {
		t.Errorf("%d jobs, want those of two points beside two", jobs)
	}
}

// TestTendedWhenQuiet: while rows come, jobs that are not there are not looked for.
func TestTendedWhenQuiet(t *testing.T) {
	q := connect(t, alone(t).ClientURL(), Options{AckWait: 50 * time.Millisecond})
	quiet, busy := submit(t, q, 1), submit(t, q, 2)
	busy.mu.Lock()
	busy.last = time.Now().Add(time.Hour) // a row has just come, whenever it looks
	busy.mu.Unlock()
	subject := func(r *Rows) string { return "textpoke.job." + token("1.0") + "." + r.id + ".*" }
	jobs := func(r *Rows) int {
		info, err := q.jobs.Info(t.Context(), jetstream.WithSubjectFilter(subject(r)))
		if err != nil {
			t.Fatal(err)
		}
		return len(info.State.Subjects)
	}
	for range 5 {
		if err := q.jobs.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the job of the one is there again", func() bool { return jobs(quiet) == 1 })
	}
	if n := jobs(busy); n != 0 {
		t.Errorf("%d jobs of the other are there again", n)
	}
}

// TestCloseWaits: when listening has ended, nothing is done for the run any more.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, goOn, closed := rowsOf(&Queue{}), make(chan struct{}), make(chan struct{})
		r.tending.Go(func() { <-goOn })
		go func() { defer close(closed); r.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while it is tended")
		default:
		}
		close(goOn)
		<-closed
	})
}
