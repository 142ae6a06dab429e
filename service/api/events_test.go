// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/textpoke/textpoke/service"
)

// reader reads a stream of events.
type reader struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

func (w *world) follow(t *testing.T, path, last string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", w.http.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %d", path, resp.StatusCode)
	}
	r := &reader{t, bufio.NewScanner(resp.Body), func() { cancel(); resp.Body.Close() }}
	t.Cleanup(r.close)
	return r
}

// next is the next event, which is as the document says; its ID is "" for a gap.
func (r *reader) next() (id, kind string, e *Event) {
	e = &Event{}
	r.t.Helper()
	for r.lines.Scan() {
		switch field, value, _ := strings.Cut(r.lines.Text(), ": "); field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if kind == "gap" {
				return id, kind, e
			}
			if err := valid("/components/schemas/Event", []byte(value)); err != nil {
				r.t.Error(err)
			}
			if err := json.Unmarshal([]byte(value), e); err != nil {
				r.t.Fatal(err)
			}
			if strconv.FormatInt(e.ID, 10) != id || string(e.Kind) != kind {
				r.t.Errorf("event %s %s says %+v", id, kind, e)
			}
			return id, kind, e
		}
	}
	r.t.Fatalf("the stream has ended: %v", r.lines.Err())
	return
}

// until reads up to the update's end and returns that event's ID.
func (r *reader) until(update int64) string {
	r.t.Helper()
	for {
		id, _, e := r.next()
		if e.Update != nil && e.Update.ID == update && e.Update.HasEnded() {
			return id
		}
	}
}

// TestEventsResume: whoever says what it has heard last hears all that follows, and
// nothing twice.
func TestEventsResume(t *testing.T) {
	w := ready(t)
	r := w.follow(t, "/v1/events", "")
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["fn1*"],"wait":true`)), 200)
	last := r.until(1)
	r.close()
	is[Update](w.do("POST", "/v1/updates", request("a", false, `,"filter":["fn1*"],"wait":true`)), 200)
	r = w.follow(t, "/v1/events?after=1", last) // the header is newer than the address
	want, err := strconv.Atoi(last)
	if err != nil {
		t.Fatal(err)
	}
	states := ""
	for states != "queued running live " {
		id, kind, e := r.next()
		if want++; id != strconv.Itoa(want) {
			t.Fatalf("event %s %s, want %d", id, kind, want)
		}
		if e.Update != nil && e.Update.Phase == "" && e.Update.ID == 2 {
			states += string(e.Update.State) + " "
		}
		if len(states) > 100 {
			t.Fatal(states)
		}
	}
	r.close()
	r = w.follow(t, "/v1/events", strconv.Itoa(1<<60)) // of a clock that was ahead
	if _, kind, _ := r.next(); kind != "gap" {
		t.Errorf("%s, want gap", kind)
	}
	r.until(2)
	if s := w.do("HEAD", "/v1/events", nil); s.status != 200 {
		t.Errorf("%+v", s)
	}
}

// TestStreamsAreLimited: one too many is told so, and one that ends makes room.
func TestStreamsAreLimited(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) { c.Limits.Streams = 1 })
	r := w.follow(t, "/v1/events", "")
	p := w.do("GET", "/v1/events", nil)
	is[Problem](p, 429)
	if p.header.Get("Retry-After") != "1" {
		t.Errorf("%+v", p.header)
	}
	r.close()
	for range 200 {
		if w.handler.streams.Load() == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.follow(t, "/v1/events", "").close()
}

// TestSlowReader: who does not read is cut off, and nobody waits for it.
func TestSlowReader(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) { c.Limits.Write = 50 * time.Millisecond })
	slow := w.raw(t)
	slow.write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	began := time.Now()
	for i := 0; w.handler.streams.Load() == 0 && i < 200; i++ {
		time.Sleep(5 * time.Millisecond)
	}
	for n := 0; w.handler.streams.Load() > 0; n++ {
		is[Update](w.do("POST", "/v1/updates", request("a", n%2 == 0, `,"filter":["*"],"wait":true`)), 200)
		if time.Since(began) > 20*time.Second {
			t.Fatal("the slow reader is still there")
		}
	}
}

// TestChosenEvents: a stream of some kinds, and of one client's updates, has no others.
func TestChosenEvents(t *testing.T) {
	w := ready(t)
	r := w.follow(t, "/v1/events?kind=update&kind=plug&client=b", "")
	for _, client := range []string{"a", "b"} {
		is[Update](w.do("POST", "/v1/updates", request(client, true, `,"records":["fn1"],"wait":true`)), 200)
	}
	is[CPU](w.do("PUT", "/v1/cpus/2", `{"online":false}`), 200)
	for _, want := range []string{"queued", "running", "live", ""} {
		_, kind, e := r.next()
		if want == "" && kind != "plug" || want != "" && (e.Update == nil || e.Update.Client != "b" || string(e.Update.State) != want) {
			t.Errorf("%s %+v, want %s", kind, e, want)
		}
	}
	for query, field := range map[string]string{"kind=nothing": "kind", "renew=true": "client", "renew=x": "renew"} {
		if p := is[Problem](w.do("GET", "/v1/events?"+query, nil), 400); p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// TestStreamRenews: a lease goes on as long as a stream that renews it is open, and no longer. Who may only read renews none.
func TestStreamRenews(t *testing.T) {
	var past atomic.Int64
	w := ready(t, func(s *service.Config, c *Config) {
		s.Now = func() time.Time { return time.Unix(1_900_000_000+past.Load(), 0) }
		c.Tokens = tokens(t, "full "+fullToken+"\nread "+readToken+"\nown "+ownToken+" b\n")
	})
	until := func() time.Time {
		w.token = fullToken
		return is[Client](w.do("GET", "/v1/clients/a", nil), 200).Wants[0].Until
	}
	w.token = fullToken
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"lease":100,"wait":true`)), 200)
	before := until()
	for _, token := range []string{readToken, ownToken} {
		w.token = token
		is[Problem](w.do("GET", "/v1/events?client=a&renew=true", nil), 403)
	}
	w.token = fullToken
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", w.http.URL+"/v1/events?client=a&renew=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+fullToken)
	resp, err := w.client.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	past.Store(51)
	for end := time.Now().Add(10 * time.Second); until().Equal(before) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if now := until(); !now.Equal(before.Add(51 * time.Second)) {
		t.Errorf("until %v, before %v: want 51 s more", now, before)
	}
	cancel()
	resp.Body.Close()
}

// TestTurns: streams that always have more are sent one after the other, each as often as the others, so that what they
// cost is a twentieth of the time. A thousand a second that come and go meanwhile take none of it.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const piece = 100 * time.Microsecond
		all, over := newTurns(), make(chan struct{})
		all.cost.Store(int64(piece))
		alive := time.NewTicker(time.Hour)
		<-all.next
		all.pass(time.Now())
		leaves := make(chan struct{})
		time.AfterFunc(piece, func() { close(leaves) })
		if err := (&stream{turns: all, alive: alive, gone: leaves}).turn(); err == nil {
			t.Error("a turn came too early")
		}
		if len(all.next) == 0 {
			t.Fatal("a reader that has gone has kept its turn")
		}
		var sent [64]int
		var streams sync.WaitGroup
		for i := range sent {
			streams.Go(func() {
				for s := (&stream{turns: all, alive: alive, gone: over}); s.turn() == nil; sent[i]++ {
					time.Sleep(piece)
					all.took(piece)
				}
			})
		}
		for range 1000 {
			gone := make(chan struct{})
			streams.Go(func() { _ = (&stream{turns: all, alive: alive, gone: gone}).turn() })
			time.Sleep(time.Millisecond)
			close(gone)
		}
		close(over)
		streams.Wait()
		together := 0
		for i, n := range sent {
			if together += n; n < 7 || n > 8 {
				t.Errorf("stream %d has sent %d pieces, want a 64th of 500", i, n)
			}
		}
		if together < 490 || together > 501 {
			t.Errorf("%d pieces were sent, want 500", together)
		}
	})
}

// TestReaderIsNoMeasure: a piece that waited for its reader costs no more than a millisecond.
func TestReaderIsNoMeasure(t *testing.T) {
	all := newTurns()
	for range 200 {
		all.took(time.Second)
	}
	now := time.Now()
	<-all.next
	all.pass(now)
	if wait := (<-all.next).Sub(now); (wait - 20*time.Millisecond).Abs() > 20*time.Microsecond {
		t.Errorf("the next waits %v, want twenty times a millisecond", wait)
	}
}
