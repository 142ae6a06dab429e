// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/textpoke/textpoke/service"
)

const requestIDHeader = "X-Request-Id"

var errPanicked = errors.New("a handler panicked")

// answer is a response that is remembered for the log and the metrics.
type answer struct {
	http.ResponseWriter
	id      string
	began   time.Time
	route   string // as the document spells it
	status  int
	bytes   int64
	err     error
	clients []string // whose updates the token is for; nil: everybody's
	wholly  bool     // the request's body was read to its end
	trace   service.Parent
}

// traceOf is what a traceparent names (https://www.w3.org/TR/trace-context/, 3.2); nothing where it is none: who asks is
// answered all the same (4.3).
func traceOf(r *http.Request) (p service.Parent) {
	said := r.Header.Values("Traceparent")
	if len(said) != 1 {
		return p
	}
	found := traceparent.FindStringSubmatch(said[0])
	if found == nil || found[1] == "ff" || found[1] == "00" && found[5] != "" || strings.Trim(found[2], "0") == "" ||
		strings.Trim(found[3], "0") == "" {
		return p
	}
	flags, _ := hex.DecodeString(found[4]) // the pattern rules an error out
	return service.Parent{Trace: found[2], Span: found[3], Unsampled: flags[0]&1 == 0}
}

var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// done counts an answer and writes its line. Of the request's head, only what
// cannot hold a secret is written: no headers and no query.
func (h *Handler) done(a *answer, r *http.Request) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	took := time.Since(a.began)
	h.metrics.requests.WithLabelValues(a.route, methodName(r.Method), strconv.Itoa(a.status)).Inc()
	h.metrics.took.WithLabelValues(a.route).Observe(took.Seconds())
	level := zapcore.InfoLevel
	if a.err != nil {
		level = zapcore.ErrorLevel
	}
	trace := zap.Skip()
	if a.trace.Trace != "" {
		trace = zap.String("trace_id", a.trace.Trace)
	}
	if line := h.cfg.Log.Check(level, "request"); line != nil {
		line.Write(zap.String("request_id", a.id), zap.String("method", methodName(r.Method)), zap.String("route", a.route),
			zap.Int("status", a.status), zap.Int64("bytes", a.bytes), zap.Duration("took", took),
			zap.String("remote", r.RemoteAddr), zap.Error(a.err), trace)
	}
}

// methodName is a method, unless somebody made it up: metrics and log do not grow
// with what clients send.
func methodName(m string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}, m) {
		return m
	}
	return "other"
}

// local tells whether a Host header names this machine. It refuses a page elsewhere that lets a
// name of its own point here (DNS rebinding).
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	if len(host) > 1 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
