// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/textpoke/textpoke/internal/choice"
)

// TestAccessOptions: each thing that servers ask for is shown to them, and nothing else; a certificate comes before
// its key.
func TestAccessOptions(t *testing.T) {
	for _, c := range []struct {
		access Access
		shows  string
	}{
		{Access{}, ""}, {Access{Token: "word"}, "token word"},
		{Access{Credentials: "/none/user"}, "open /none/user: no such file or directory"},
		{Access{CA: "/none/ca"}, "open /none/ca: no such file or directory"},
		{Access{Cert: "/none/cert", Key: "/none/key"}, "open /none/cert: no such file or directory"},
		{Access{Token: "word", CA: "/none/ca"}, "open /none/ca: no such file or directory token word"},
	} {
		var o nats.Options
		var shows []string
		for _, option := range c.access.options() {
			if err := option(&o); err != nil {
				shows = append(shows, errors.Unwrap(err).Error())
			}
		}
		if o.Token != "" {
			shows = append(shows, "token "+o.Token)
		}
		if got := strings.Join(shows, " "); got != c.shows {
			t.Errorf("%+v: %s, want %s", c.access, got, c.shows)
		}
	}
}

// TestNobodyThere: without a server to wait for, that is an error; one that keeps nothing is named.
func TestNobodyThere(t *testing.T) {
	s := alone(t)
	url := s.ClientURL()
	s.Shutdown()
	s.WaitForShutdown()
	if _, err := Connect(t.Context(), url, Options{}); !errors.Is(err, ErrNoServer) ||
		!strings.HasPrefix(err.Error(), ErrNoServer.Error()+": ") {
		t.Error(err)
	}
	keepsNothing, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true,
		NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	keepsNothing.Start()
	t.Cleanup(func() { keepsNothing.Shutdown(); keepsNothing.WaitForShutdown() })
	if !keepsNothing.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	url = keepsNothing.ClientURL()
	soon, cancel := context.WithTimeout(t.Context(), 2*pause)
	defer cancel()
	if _, err := Connect(soon, url, Options{}); err == nil || !strings.HasPrefix(err.Error(), "queue "+url+": ") {
		t.Error(err)
	}
}

// TestPersists: what fails is tried again until there is no more time; what servers without a store say is
// explained, at once where it will not pass.
func TestPersists(t *testing.T) {
	const hint = ": start the server with -js, or textpoke-queue"
	for why, want := range map[error]struct {
		tries int
		hint  string
	}{nats.ErrNoResponders: {2, hint}, jetstream.ErrJetStreamNotEnabled: {1, hint},
		jetstream.ErrJetStreamNotEnabledForAccount: {1, hint}, nats.ErrTimeout: {2, ""}, nil: {1, ""}} {
		ctx, cancel := context.WithCancel(t.Context())
		tries := 0
		err := new(Queue).persist(ctx, func(context.Context) error {
			if tries++; tries == 2 {
				cancel()
			}
			return why
		})
		cancel()
		if tries != want.tries || !errors.Is(err, why) || err != nil && err.Error() != why.Error()+want.hint {
			t.Errorf("%v: tried %d times, then %v", why, tries, err)
		}
	}
}

// TestReplicas: everything is kept on three servers where there are as many.
func TestReplicas(t *testing.T) {
	s := alone(t)
	for n, want := range map[int]int{1: 1, 2: 1, 3: 3, 4: 3} {
		urls := []string{s.ClientURL()}
		for i := range n - 1 {
			urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", i+1))
		}
		nc, err := nats.Connect(strings.Join(urls, ","), nats.DontRandomize())
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Queue{nc: nc}).replicas(); got != want {
			t.Errorf("on %d of %d servers, want %d", got, n, want)
		}
		nc.Close()
	}
}

// TestRefusedMessages: which errors say that a subject has its message already.
func TestRefusedMessages(t *testing.T) {
	const full = "maximum messages per subject exceeded"
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {errors.New(full), false},
		{&jetstream.APIError{ErrorCode: 10071}, true}, {&jetstream.APIError{ErrorCode: 10164}, true},
		{&jetstream.APIError{ErrorCode: 10077, Description: full}, true}, {&jetstream.APIError{ErrorCode: 10077}, false},
		{&jetstream.APIError{ErrorCode: 10076, Description: full}, false}, {&jetstream.APIError{}, false},
	} {
		if got := refused(c.err); got != c.want {
			t.Errorf("%+v: %v", c.err, got)
		}
	}
}

// TestNames: a part of a subject is the first 64 bits of SHA-256, and a run's name that of its JSON.
func TestNames(t *testing.T) {
	r := Run{Program: "p", Request: choice.Request{Name: "n"}, Inputs: map[string]string{"f": "sum"}, Points: 2,
		Keys: "k"}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if want := fmt.Sprintf("%x", sum[:8]); r.id() != want || token(string(text)) != want {
		t.Errorf("%s, %s, want %s", r.id(), token(string(text)), want)
	}
	got := rowSubject("r", 7) + " " + rowSubjects("r") + " " + objectName("r", "x")
	if got != "textpoke.row.r.7 textpoke.row.r.* r/x" {
		t.Error(got)
	}
}

// TestTell: a worker says who it is, what it is at, the longest first, and what it could not do; a line is told once.
func TestTell(t *testing.T) {
	srv := alone(t)
	q := connect(t, srv.ClientURL(), Options{Name: "w"})
	heard, err := q.nc.SubscribeSync("textpoke.worker.*")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	s := &session{Queue: q, Worker: Worker{Log: func(line string) { lines = append(lines, line) }},
		told: map[string]bool{}, busy: map[*begun]time.Time{
			{Run: "r", Key: "short"}: time.Now().Add(-time.Minute),
			{Run: "r", Key: "long"}:  time.Now().Add(-time.Hour),
			{Run: "r", Key: "new"}:   time.Now()}}
	for range 2 {
		s.say("r", errors.New("no room"))
	}
	if !slices.Equal(lines, []string{"run r: no room"}) {
		t.Errorf("told %q", lines)
	}
	s.tell(true)
	m, err := heard.NextMsg(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var b beat
	if err := json.Unmarshal(m.Data, &b); err != nil {
		t.Fatal(err)
	}
	var busy []string
	for _, p := range b.Busy {
		busy = append(busy, p.Run+" "+p.Key)
	}
	if m.Subject != "textpoke.worker."+token("w") || b.Worker != "w" || b.Program != "1.0" || !b.Ends ||
		b.Trouble != (trouble{"r", "no room"}) || !slices.Equal(busy, []string{"r long", "r short", "r new"}) {
		t.Errorf("%s: %+v", m.Subject, b)
	}
}

// TestIdleWorker: a worker is idle that does nothing, and has not for as long as it may.
func TestIdleWorker(t *testing.T) {
	for i, c := range []struct {
		idle, since time.Duration
		busy        int
		want        bool
	}{{0, time.Hour, 0, false}, {time.Minute, time.Hour, 0, true}, {time.Minute, time.Hour, 1, false},
		{time.Hour, time.Minute, 0, false}} {
		s := &session{Worker: Worker{Idle: c.idle}, last: time.Now().Add(-c.since), busy: map[*begun]time.Time{}}
		for range c.busy {
			s.busy[&begun{}] = time.Now()
		}
		if got := s.idle(); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// beside are points that may be alone or not.
type beside struct {
	squares
	alone bool
}

func (b beside) Alone() bool { return b.alone }

// TestHands: a point has one hand, or all of them where it must be alone or its run is not open, and gives back
// what it has.
func TestHands(t *testing.T) {
	s := &session{Worker: Worker{Jobs: 4}}
	for i, c := range []struct {
		alone bool
		run   *ready
		want  int64
	}{{false, nil, 4}, {false, &ready{points: beside{}}, 1}, {true, &ready{points: beside{}}, 4},
		{false, &ready{points: beside{alone: true}}, 4}} {
		if got := s.needs(c.alone, c.run); got != c.want {
			t.Errorf("%d: %d hands, want %d", i, got, c.want)
		}
	}
	hands, placed := semaphore.NewWeighted(4), 0
	free := func(want int64) {
		t.Helper()
		n := int64(0)
		for hands.TryAcquire(1) {
			n++
		}
		if hands.Release(n); n != want {
			t.Errorf("%d hands are free, want %d", n, want)
		}
	}
	if !hands.TryAcquire(1) {
		t.Fatal("no hand is free")
	}
	p := &share{hands, 1, func() { placed++ }}
	for i, n := range []int64{1, 4, 4, 2, 3} {
		if err := p.set(t.Context(), n); err != nil || placed != i+1 {
			t.Errorf("%v, placed %d times", err, placed)
		}
		free(4 - n)
	}
	if !hands.TryAcquire(1) {
		t.Fatal("the last hand is not free")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.set(gone, 4); !errors.Is(err, context.Canceled) || placed != 5 {
		t.Errorf("%v, placed %d times", err, placed)
	}
	hands.Release(1)
	p.leave()
	free(4)
	if placed != 6 {
		t.Errorf("placed %d times", placed)
	}
}

// TestRuns: a worker keeps the latest three runs, finds those that are open, and forgets one that is over,
// which ends it.
func TestRuns(t *testing.T) {
	s := &session{Queue: &Queue{}}
	var all []*ready
	for i, err := range []error{nil, errors.New("not open"), nil} {
		r := &ready{id: fmt.Sprint(i), opened: make(chan struct{}), err: err, points: squares{}}
		r.ctx, r.cancel = context.WithCancel(t.Context())
		defer r.cancel()
		if i < 2 {
			close(r.opened)
		}
		all, s.runs = append(all, r), append(s.runs, r)
	}
	for i, want := range []*ready{all[0], nil, nil, nil} {
		if got := s.opened(fmt.Sprint(i)); got != want {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if r, err := s.ready(t.Context(), "1"); r != all[1] || err != all[1].err {
		t.Errorf("%+v, %v", r, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ready(gone, "2"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.over("1")
	if len(s.runs) != 2 || s.runs[0] != all[0] || s.runs[1] != all[2] || all[1].ctx.Err() == nil ||
		all[0].ctx.Err() != nil ||
		all[2].ctx.Err() != nil {
		t.Errorf("%+v", s.runs)
	}
}

// TestOpen: a run's description must be its own and of this program; a missing one was removed by who submitted
// it. Of more runs than a worker keeps, the oldest is forgotten.
func TestOpen(t *testing.T) {
	q := connect(t, alone(t).ClientURL(), Options{Name: "w"})
	c := newTeam()
	s := &session{Queue: q, Worker: c.Worker}
	if _, err := s.ready(t.Context(), "none"); !errors.Is(err, errOver) || len(s.runs) != 0 {
		t.Errorf("%v, %d runs", err, len(s.runs))
	}
	put := func(id, text string) {
		if _, err := q.files.PutBytes(t.Context(), objectName(id, "about"), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	about := func(r Run) (id, text string) {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return r.id(), string(b)
	}
	put("broken", "{")
	old, text := about(Run{Program: "0.9"})
	put(old, text)
	mine, text := about(Run{Program: "1.0"})
	put("other", text)
	for id, want := range map[string]string{"broken": "its description: unexpected end of JSON input",
		old:     "its description is that of run " + old + " of textpoke 0.9: this is textpoke 1.0",
		"other": "its description is that of run " + mine + " of textpoke 1.0: this is textpoke 1.0"} {
		if _, err := s.ready(t.Context(), id); err == nil || err.Error() != want || len(s.runs) != 0 {
			t.Errorf("%v, want %s; %d runs", err, want, len(s.runs))
		}
	}
	var ids, kept []string
	for n := range readyRuns + 1 {
		id, text := about(Run{Program: "1.0", Points: n})
		put(id, text)
		for range 2 {
			if r, err := s.ready(t.Context(), id); err != nil || r.id != id {
				t.Fatal(r, err)
			}
		}
		ids = append([]string{id}, ids...)
	}
	for _, r := range s.runs {
		kept = append(kept, r.id)
		r.cancel()
	}
	if diff := cmp.Diff(ids[:readyRuns], kept); diff != "" {
		t.Error(diff)
	}
}
