// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// rawConn is a connection without a client's manners.
type rawConn struct {
	t testing.TB
	net.Conn
}

func (w *world) raw(t testing.TB) rawConn {
	t.Helper()
	c, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return rawConn{t, c}
}

func (c rawConn) write(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// TestBackPressure: while nothing goes on, a client is told to come back, and so
// is everybody once the queue is full.
func TestBackPressure(t *testing.T) {
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	w := ready(t, func(c *service.Config, _ *Config) {
		c.Queue, c.PerClient = 3, 2
		c.At = func(point string) {
			if point == service.BeforeApply {
				<-hold
			}
		}
	})
	defer release()
	body := func(client string) string { return request(client, true, `,"filter":["*"]`) }
	for _, client := range []string{"a", "a", "b"} {
		is[Update](w.do("POST", "/v1/updates", body(client)), 202)
	}
	for _, client := range []string{"a", "c"} {
		r := w.do("POST", "/v1/updates", body(client))
		is[Problem](r, 429)
		if r.header.Get("Retry-After") != "1" {
			t.Errorf("%+v", r.header)
		}
	}
	cancelled := 0
	for id := 1; id <= 3; id++ { // those that no batch has taken up
		if r := w.do("DELETE", fmt.Sprintf("/v1/updates/%d", id), nil); r.status == 200 {
			cancelled++
			if u := is[Update](r, 200); u.State != "cancelled" || !u.HasEnded() {
				t.Errorf("%+v", u)
			}
		} else {
			is[Problem](r, 409)
		}
	}
	if cancelled == 0 || cancelled == 3 {
		t.Errorf("%d of 3 were cancelled, with one that had begun", cancelled)
	}
	release()
	is[Update](w.do("POST", "/v1/updates", request("c", true, `,"filter":["*"],"wait":true`)), 200)
}

// TestWaitIsBounded: who waits longer than that is told how things stand.
func TestWaitIsBounded(t *testing.T) {
	hold := make(chan struct{})
	w := ready(t, func(c *service.Config, h *Config) {
		h.Limits.Wait = 20 * time.Millisecond
		c.At = func(point string) {
			if point == service.BeforeApply {
				<-hold
			}
		}
	})
	u := is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"],"wait":true`)), 202)
	if u.HasEnded() {
		t.Errorf("%+v", u)
	}
	is[Update](w.do("GET", "/v1/updates/1?wait=true", nil), 200)
	close(hold)
}

// TestVanish: clients that go away in the middle of anything leave nothing behind,
// and what was accepted from them is carried out.
func TestVanish(t *testing.T) {
	w := ready(t)
	is[Stats](w.do("GET", "/v1/stats", nil), 200)
	before := runtime.NumGoroutine()
	accepted := 0
	for i := range 40 {
		c := w.raw(t)
		switch i % 4 {
		case 0:
			c.write("POST /v1/upda")
		case 1:
			c.write(
				"POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
					"1000\r\n\r\n{\"client\":",
			)
		case 2:
			c.write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		case 3:
			body := request("gone", true, `,"filter":["*"],"wait":true`)
			c.write(
				fmt.Sprintf(
					"POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					len(body),
					body,
				),
			)
			accepted++
		}
		if i%4 == 3 { // it is accepted before its client goes
			for len(is[Updates](w.do("GET", "/v1/updates", nil), 200).Updates) < accepted {
				time.Sleep(time.Millisecond)
			}
		}
		c.Close()
	}
	for i := range accepted {
		if u := is[Update](w.do("GET", fmt.Sprintf("/v1/updates/%d?wait=true", i+1), nil), 200); u.State != "live" {
			t.Errorf("%+v", u)
		}
	}
	for range 400 {
		if runtime.NumGoroutine() <= before+1 && w.handler.streams.Load() == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after, %d streams", before, runtime.NumGoroutine(), w.handler.streams.Load())
}

// TestIdleConnections: whoever only holds connections keeps nobody out, and holds
// no more than the limit.
func TestIdleConnections(t *testing.T) {
	const limit = 64 // newWorld's
	n := 300
	if *long {
		n = 10_000
	}
	w := ready(t)
	stream := w.follow(t, "/v1/events", "") // busy all the time: it is never the one
	before := runtime.NumGoroutine()
	for i := range n {
		c := w.raw(t)
		switch i % 5 { // half a request is no more than none
		case 0:
			c.write("GET /v1/st")
		case 1, 2, 3:
			c.write("POST /v1/updates HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
				"Content-Length: 1000\r\n\r\n{")
		}
		if i%100 == 0 {
			is[Stats](w.do("GET", "/v1/stats", nil), 200)
		}
	}
	w.client.CloseIdleConnections()
	is[Stats](w.do("GET", "/v1/stats", nil), 200) // on a connection behind all of these
	deadline := time.Now().Add(headTime / 2)      // before their time is up anyway
	for runtime.NumGoroutine() > before+2*limit && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before+2*limit {
		t.Errorf("%d goroutines before, %d with %d connections", before, now, n)
	}
	w.client.CloseIdleConnections()
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"],"wait":true`)), 200)
	stream.until(1)
}

// TestLongHead: a head that is too long is refused, and no memory goes to it.
func TestLongHead(t *testing.T) {
	w := ready(t)
	c := w.raw(t)
	go func() { // it may be cut off before all is written
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100_000) + "\r\n\r\n"))
	}()
	b := make([]byte, 100)
	n, err := c.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 431 ") {
		t.Errorf("%s %v", b[:n], err)
	}
}
