// SPDX-License-Identifier: Apache-2.0

package api

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Limits of one connection. A browser's page sends its requests' heads at once, in a kilobyte.
const (
	headTime = 10 * time.Second
	readTime = 30 * time.Second
	idleTime = 2 * time.Minute
	headSize = 16 << 10
)

// Server makes the HTTP server, for at most so many connections. At one connection too many the
// longest idle one is closed: a client that only holds connections cannot keep others out.
func (h *Handler) Server(connections int) *http.Server {
	c := &connLimit{most: connections, open: map[net.Conn]*list.Element{}}
	h.conns = c
	// What net/http has to say is mostly of clients that do not speak TLS, or not HTTP.
	said, err := zap.NewStdLogAt(h.cfg.Log, zap.DebugLevel)
	if err != nil {
		panic(err) // the level is a constant
	}
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headTime,
		ReadTimeout:       readTime,
		WriteTimeout:      h.cfg.Limits.Wait + readTime, // streams set their own
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headSize,
		ConnState:         c.changed,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ErrorLog: said,
	}
}

// connLimit knows which connections are open, and in what order they became idle.
type connLimit struct {
	most int
	mu   sync.Mutex
	open map[net.Conn]*list.Element // nil for those that are busy
	idle list.List                  // of net.Conn, the longest idle first
}

// changed is told what happens to connections, in order for each of them.
func (c *connLimit) changed(conn net.Conn, s http.ConnState) {
	if out := c.note(conn, s); out != nil {
		out.Close() // outside the lock: TLS says goodbye first
	}
}

// note keeps the books and returns the connection that is one too many.
func (c *connLimit) note(conn net.Conn, s http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.open[conn]
	if !known && s != http.StateNew {
		return nil // closed here, before it knows itself
	}
	if at != nil {
		c.idle.Remove(at)
	}
	switch s {
	case http.StateActive:
		c.open[conn] = nil
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.idle.PushBack(conn)
	default:
		delete(c.open, conn)
	}
	if len(c.open) <= c.most || c.idle.Len() == 0 {
		return nil
	}
	out := c.idle.Remove(c.idle.Front()).(net.Conn)
	delete(c.open, out)
	return out
}

// connKey is where a request's context has its connection.
type connKey struct{}

// awaits counts a request's connection as idle while its body is read: who sends half of
// one holds a connection as much as who sends nothing. It returns the end of that.
func (c *connLimit) awaits(r *http.Request) (ended func()) {
	conn, ok := r.Context().Value(connKey{}).(net.Conn)
	if c == nil || !ok || r.ProtoMajor != 1 { // several requests share one of HTTP/2
		return func() {}
	}
	c.changed(conn, http.StateIdle)
	return func() { c.changed(conn, http.StateActive) }
}
