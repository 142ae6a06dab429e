// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/service"
)

// TestLimitsNotGiven: what a handler takes for limits that it was not told, and that it takes those that it was.
func TestLimitsNotGiven(t *testing.T) {
	given := Limits{Body: 7, Wait: time.Second, Streams: 3, Write: time.Minute}
	for in, want := range map[Limits]Limits{
		{}: {Body: 1 << 20, Wait: 30 * time.Second, Streams: 64, Write: 5 * time.Second}, given: given,
	} {
		if h := New(Config{Limits: in, Log: zap.NewNop()}); h.cfg.Limits != want {
			t.Errorf("%+v, want %+v", h.cfg.Limits, want)
		}
	}
}

// TestHeadersOfAll: what every answer says of itself, whatever it answers.
func TestHeadersOfAll(t *testing.T) {
	w := ready(t)
	for _, path := range []string{"/healthz", "/v1/stats", "/v1/nothing"} {
		header := w.do("GET", path, nil).header
		for name, want := range map[string]string{"Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; sandbox",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff"} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if id := header.Get("X-Request-Id"); len(id) != 16 {
			t.Errorf("%s: the request's id is %q", path, id)
		}
	}
	r := w.do("GET", "/v1/interrupts", nil)
	if kind := r.header.Get("Content-Type"); r.status != 200 || kind != "text/plain; charset=utf-8" {
		t.Errorf("%d, %s", r.status, kind)
	}
}

// TestPanics: who makes a handler panic is told that something failed, if nothing was told before; the log tells all,
// and nothing where the answer is only cut off.
func TestPanics(t *testing.T) {
	for i, c := range []struct {
		serve        http.HandlerFunc
		status       int
		panics, told string
	}{
		{func(http.ResponseWriter, *http.Request) { panic("ouch") }, 500, "", "[panic request]"},
		{func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); panic("ouch") }, 202, "", "[panic request]"},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 200, http.ErrAbortHandler.Error(), "[]"},
		{func(http.ResponseWriter, *http.Request) {}, 200, "", "[request]"},
	} {
		core, seen := observer.New(zap.InfoLevel)
		h := New(Config{Log: zap.New(core)})
		h.routes = c.serve
		rec := httptest.NewRecorder()
		panicked := ""
		func() {
			defer func() {
				if p := recover(); p != nil {
					panicked = fmt.Sprint(p)
				}
			}()
			h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		}()
		var told []string
		for _, e := range seen.All() {
			told = append(told, e.Message)
			if status, ok := e.ContextMap()["status"]; ok && status != int64(c.status) {
				t.Errorf("%d: the log says %v", i, status)
			}
		}
		if rec.Code != c.status || panicked != c.panics || fmt.Sprint(told) != c.told {
			t.Errorf("%d: %d, panics %q, told %v; want %+v", i, rec.Code, panicked, told, c)
		}
		var p Problem
		if json.Unmarshal(rec.Body.Bytes(), &p) == nil != (c.status == 500) ||
			p.Detail != map[int]string{500: inside}[c.status] {
			t.Errorf("%d: %s", i, rec.Body)
		}
	}
}

// TestMatch: one tag in quotes, or none.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		said []string
		want string // what it names
		ok   bool
	}{{nil, "", true}, {[]string{`"x"`}, "x", true}, {[]string{"x"}, "", false},
		{[]string{`"x`}, "", false},
		{[]string{`x"`}, "", false},
		{[]string{`""`}, "", false}, {[]string{`"x","y"`}, "", false}, {[]string{`"x,y"`}, "", false},
		{[]string{`"x"y"`}, "", false},
		{[]string{`"x"`, `"x"`}, "", false}, {[]string{"*"}, "", false}} {
		r := httptest.NewRequest("PUT", "/", nil)
		r.Header["If-Match"] = c.said
		if got, err := match(r); got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %q, %v", c.said, got, err)
		}
	}
	for _, c := range []struct {
		said []string
		key  string
		want string
		ok   bool
	}{{nil, "", "", true}, {nil, "k", "k", true}, {[]string{"a"}, "", "a", true},
		{[]string{`"a"`}, "", "a", true}, {[]string{"a"}, "k", "k", false},
		{[]string{"a", "a"}, "", "", false}, {[]string{`""`}, "", "", false}} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Idempotency-Key"] = c.said
		q := Request{Wish: Wish{Key: c.key}}
		if err := q.keyed(r); q.Key != c.want || (err == nil) != c.ok {
			t.Errorf("%q beside %q: %q, %v", c.said, c.key, q.Key, err)
		}
	}
}

// TestLocal: names of this machine, with and without a port.
func TestLocal(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "localhost:1": true, "127.0.0.1": true,
		"127.8.0.1:2": true, "[::1]": true,
		"[::1]:3": true, "::1": true, "": false, "[": false, "[]": false, "[]:1": false,
		"localhost.example": false, "10.0.0.1": false,
		"[::2]:1": false, "example": false, ":80": false} {
		if got := local(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestTextBorders: how long a text, and a list of them, may be, and the characters around those that control
// terminals.
func TestTextBorders(t *testing.T) {
	for s, want := range map[string]string{"": "<nil>", "abc": "<nil>", "abcd": "f: 4 bytes, want at most 3",
		" ~":   "<nil>",
		"\x1f": "f: control characters in it", "\x7f": "f: control characters in it", "\x80": "f: not UTF-8",
		"\u0080": "<nil>"} {
		if got := fmt.Sprint(text("f", s, 3)); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	for n, want := range []string{"<nil>", "<nil>", "<nil>", "f: 3 of them, want at most 2"} {
		if got := fmt.Sprint(texts("f", make([]string, n), 2, 3)); got != want {
			t.Errorf("%d texts: %s, want %s", n, got, want)
		}
	}
	if err := texts("f", []string{"a", "abcd"}, 2, 3); err == nil || err.Error() != "f[1]: 4 bytes, want at most 3" {
		t.Error(err)
	}
}

// TestAwaits: a connection of HTTP/1 is idle while the body of its request is read, and busy afterwards. One of
// HTTP/2 has other requests, and of an unknown one nothing is noted.
func TestAwaits(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	for i, want := range []struct{ before, during, after int }{{0, 1, 0}, {0, 0, 0}, {0, 0, 0}} {
		c := &connLimit{most: 2, open: map[net.Conn]*list.Element{}}
		c.changed(here, http.StateNew)
		c.changed(here, http.StateActive)
		r := httptest.NewRequest("POST", "/", nil)
		if i < 2 {
			r = r.WithContext(context.WithValue(r.Context(), connKey{}, here))
		}
		r.ProtoMajor = 1 + i%2
		got := want
		got.before = c.idle.Len()
		ended := c.awaits(r)
		got.during = c.idle.Len()
		ended()
		if got.after = c.idle.Len(); got != want {
			t.Errorf("%d: idle are %+v, want %+v", i, got, want)
		}
	}
	r := httptest.NewRequest("POST", "/", nil)
	(*connLimit)(nil).awaits(r.WithContext(context.WithValue(r.Context(), connKey{}, here)))()
}

// TestBusyBehindTheBody: a connection whose request is being answered is busy; a request that is refused once it
// was read leaves its connection open.
func TestBusyBehindTheBody(t *testing.T) {
	var w *world
	idle := make(chan int, 9)
	w = ready(t, func(c *service.Config, _ *Config) {
		c.At = func(point string) {
			if point == service.BeforeAccept {
				w.handler.conns.mu.Lock()
				idle <- w.handler.conns.idle.Len()
				w.handler.conns.mu.Unlock()
			}
		}
	})
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["fn1"],"wait":true`)), 200)
	if n := <-idle; n != 0 {
		t.Errorf("%d connections are idle, and the only one is not", n)
	}
	for _, body := range []string{`{"client":7}`, `{"client":"a","enable":true}`} {
		rec := w.answered(t, "POST", "/v1/updates", "", body)
		if got := rec.Header().Get("Connection"); rec.Code != 400 || got != "" {
			t.Errorf("%s: %d, connection %q", body, rec.Code, got)
		}
	}
	if rec := w.answered(t, "GET", "/v1/stats", "", "{}"); rec.Code != 400 || rec.Header().Get("Connection") != "close" {
		t.Errorf("%d, connection %q, and its body is not read", rec.Code, rec.Header().Get("Connection"))
	}
}

// TestSetTokens: from then on others may do what they say.
func TestSetTokens(t *testing.T) {
	w := ready(t)
	is[Stats](w.do("GET", "/v1/stats", nil), 200)
	w.handler.SetTokens(tokens(t, "read "+readToken+"\n"))
	is[Problem](w.do("GET", "/v1/stats", nil), 401)
	w.token = readToken
	is[Stats](w.do("GET", "/v1/stats", nil), 200)
}

// TestPagesEnd: a page that has just as many as there are names no next one, and one that has fewer names its last.
func TestPagesEnd(t *testing.T) {
	w := ready(t)
	for i := range 3 {
		is[Update](w.do("POST", "/v1/updates", request(fmt.Sprint("c", i), true, `,"records":["fn1"],"wait":true`)), 200)
	}
	for path, c := range map[string]struct {
		list string
		all  int
		next any
	}{"/v1/updates?": {"updates", 3, 2.0}, "/v1/clients?": {"wants", 3, "c1"}, "/v1/records?": {"records", 100, 98.0}} {
		for limit, more := range map[int]bool{c.all - 1: true, c.all: false, c.all + 1: false} {
			page := is[map[string]any](w.do("GET", fmt.Sprintf("%slimit=%d", path, limit), nil), 200)
			if n := len(page[c.list].([]any)); n != min(limit, c.all) || more && page["next"] != c.next ||
				!more && page["next"] != nil {
				t.Errorf("%s%d: %d of them, next %v", path, limit, n, page["next"])
			}
		}
	}
}

// TestTraceEnds: the server's end ends a trace, and one that renews its client's leases does so while it is open.
func TestTraceEnds(t *testing.T) {
	now := make(chan time.Time, 1)
	now <- time.Unix(1_900_000_000, 0)
	w := ready(t, func(c *service.Config, _ *Config) {
		c.Now = func() time.Time { at := <-now; now <- at; return at }
		simulated := c.Machine
		c.Machine = func(l *cpus.Listener, log *zap.Logger) (service.Machine, error) {
			m, err := simulated(l, log)
			return traced{m}, err
		}
	})
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"lease":100,"wait":true`)), 200)
	until := func() time.Time { return is[Client](w.do("GET", "/v1/clients/a", nil), 200).Wants[0].Until }
	before := until()
	resp, err := w.client.Get(w.http.URL + "/v1/trace?client=a&renew=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	now <- (<-now).Add(51 * time.Second)
	for until().Equal(before) { // a second of the leases' clock, or so
		time.Sleep(10 * time.Millisecond)
	}
	if got := until(); !got.Equal(before.Add(51 * time.Second)) {
		t.Errorf("until %v, want 51 s more than %v", got, before)
	}
	w.handler.Stop()
	if text, err := io.ReadAll(resp.Body); err != nil || !bytes.HasSuffix(text, []byte("\"missed\":7}\n")) ||
		strings.Count(string(text), "\n") != 3 {
		t.Errorf("%s, %v", text, err)
	}
}
