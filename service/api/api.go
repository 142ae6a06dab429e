// SPDX-License-Identifier: Apache-2.0

// Package api answers HTTP for a service: JSON under /v1/, events as a stream,
// metrics, health. openapi.json is the reference; a test holds every route and
// every answer against it.
//
// A Handler exists before the machine runs and after it stopped: Ready and Drain say when, and
// /readyz tells. A token tells who asks ([Tokens]); without tokens, only browsers' pages of this
// very server and programs on this machine are answered. No name of a file ever comes from a
// request.
package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/service/lab"
)

// Limits bound what requests may take. The zero value stands for the defaults.
type Limits struct {
	Body    int64         // bytes of a request's body; default 1 MiB
	Wait    time.Duration // how long a request may wait for an update's end; default 30 s
	Streams int           // of events at a time; default 64
	Write   time.Duration // how long a stream's reader may take for a piece; default 5 s
	Rate    service.Limit // of requests of each token; the zero value for any number
}

// Bounds of a request; the document has them too.
const (
	maxText     = 1000 // bytes of a pattern, a symbol, a parameter
	maxPatterns = service.MaxPatterns
	maxRecords  = 100_000
	maxPage     = 1000
)

// Config is what a Handler is made of.
type Config struct {
	Page    http.Handler // answers / and sets its own content security policy; nil for no page
	Tokens  Tokens
	Log     *zap.Logger
	Version Version
	Limits  Limits
}

// Handler answers all requests. It is safe for concurrent use.
type Handler struct {
	cfg     Config
	routes  http.Handler
	metrics *metrics
	streams atomic.Int64
	turns   *turns // of streams of events
	running atomic.Pointer[running]
	tokens  atomic.Pointer[Tokens]
	rates   rates
	conns   *connLimit // of Server; nil without
	stopped context.Context
	stop    context.CancelFunc // of that
	drains  atomic.Bool
}

// running is what requests are about, once it is there.
type running struct {
	service *service.Service
	lab     *lab.Lab
}

// New makes a Handler that is not ready yet.
func New(cfg Config) *Handler {
	l := &cfg.Limits
	l.Body, l.Streams = cmp.Or(l.Body, 1<<20), cmp.Or(l.Streams, 64)
	l.Wait, l.Write = cmp.Or(l.Wait, 30*time.Second), cmp.Or(l.Write, 5*time.Second)
	h := &Handler{cfg: cfg, turns: newTurns(), rates: rates{spent: map[[sha256.Size]byte]time.Time{}}}
	h.stopped, h.stop = context.WithCancel(context.Background())
	h.tokens.Store(&cfg.Tokens)
	h.metrics = newMetrics(h)
	h.routes = h.mux()
	return h
}

// Ready hands over what requests are about: from now on they are answered.
func (h *Handler) Ready(s *service.Service, l *lab.Lab) { h.running.Store(&running{s, l}) }

// SetTokens changes who may do what, for all requests from now on.
func (h *Handler) SetTokens(t Tokens) { h.tokens.Store(&t) }

// Drain refuses what would change anything, and says so in /readyz; questions are
// still answered.
func (h *Handler) Drain() { h.drains.Store(true) }

// Stop ends streams of events. It is called after Drain.
func (h *Handler) Stop() { h.stop() }

// health is whether requests are taken, and why not.
func (h *Handler) health() Health {
	r := h.running.Load()
	switch {
	case h.drains.Load():
		return Health{Status: "draining"}
	case r == nil:
		return Health{Status: "starting"}
	}
	err := r.service.Ready()
	reason := "the server's log says why"
	if trouble := new(journal.TroubleError); errors.As(err, &trouble) {
		reason = trouble.Kind.Error() // and not which file: anybody may ask
	}
	switch {
	case errors.Is(err, service.ErrBroken):
		return Health{"broken", reason}
	case err != nil:
		return Health{"unable", reason}
	}
	if harm := r.service.Damage(); len(harm) > 0 { // which updates, and not where: anybody may ask
		return Health{"ok", fmt.Sprintf("some ended updates or runs are damaged, and all else is served: %s", harm[0])}
	}
	return Health{Status: "ok"}
}

// serve answers a request, or returns an error that becomes a problem document.
type serve func(*Handler, http.ResponseWriter, *http.Request) error

// route is one thing that can be asked for.
type route struct {
	method, path string
	access       Access
	serve
}

// routes are all of them; openapi.json has the same.
func routes() []route {
	return []route{
		{"GET", "/", Open, (*Handler).page},
		{"GET", "/openapi.json", Open, (*Handler).openapi},
		{"GET", "/healthz", Open, (*Handler).healthz},
		{"GET", "/readyz", Open, (*Handler).readyz},
		{"GET", "/version", Open, (*Handler).version},
		{"GET", "/metrics", Read, (*Handler).exposition},
		{"GET", "/debug/pprof/{name}", Full, (*Handler).profile},
		{"POST", "/v1/updates", Own, (*Handler).submit},
		{"GET", "/v1/updates", Read, (*Handler).updates},
		{"GET", "/v1/updates/{id}", Read, (*Handler).update},
		{"DELETE", "/v1/updates/{id}", Own, (*Handler).cancel},
		{"GET", "/v1/records", Read, (*Handler).records},
		{"GET", "/v1/records/{name}/wants", Read, bare((*Handler).recordWants)},
		{"GET", "/v1/clients", Read, (*Handler).clients},
		{"GET", "/v1/clients/{name}", Read, bare((*Handler).client)},
		{"POST", "/v1/clients/{name}/renew", Own, bare((*Handler).renew)},
		{"GET", "/v1/clients/{name}/ops/{ops}", Read, bare((*Handler).ops)},
		{"PUT", "/v1/clients/{name}/ops/{ops}", Own, bare((*Handler).wish)},
		{"GET", "/v1/cpus", Read, bare((*Handler).cpus)},
		{"PUT", "/v1/cpus/{id}", Full, (*Handler).plug},
		{"GET", "/v1/interrupts", Read, bare((*Handler).interrupts)},
		{"GET", "/v1/stats", Read, bare((*Handler).stats)},
		{"GET", "/v1/status", Read, bare((*Handler).status)},
		{"GET", "/v1/compare", Read, (*Handler).compare},
		{"GET", "/v1/events", Read, (*Handler).events},
		{"GET", "/v1/trace", Own, (*Handler).trace},
		{"GET", "/v1/experiments", Read, bare((*Handler).experiments)},
		{"POST", "/v1/experiments", Full, bare((*Handler).startExperiment)},
		{"GET", "/v1/results", Read, (*Handler).results},
		{"GET", "/v1/results/{id}", Read, (*Handler).result},
		{"DELETE", "/v1/results/{id}", Full, (*Handler).cancelResult},
		{"GET", "/v1/results/{id}/files/{name}", Read, (*Handler).file},
	}
}

// mux finds routes. An unknown route, or another method of a known one, is answered by a problem
// document too.
func (h *Handler) mux() http.Handler {
	m := http.NewServeMux()
	methods := map[string][]string{}
	for _, rt := range routes() {
		pattern := strings.TrimSuffix(rt.path, "/")
		if pattern == "" {
			pattern = "/{$}"
		}
		m.Handle(rt.method+" "+pattern, h.guard(rt))
		methods[pattern] = append(methods[pattern], rt.method)
	}
	for pattern, allowed := range methods {
		m.Handle(pattern, h.guard(route{path: pattern, serve: func(_ *Handler, w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return problem(http.StatusMethodNotAllowed, "", "%.20q: want %s", r.Method, strings.Join(allowed, " or "))
		}}))
	}
	nothing := h.guard(route{path: "no route", serve: func(*Handler, http.ResponseWriter, *http.Request) error {
		return problem(http.StatusNotFound, "", "there is nothing of that name; /openapi.json lists what there is")
	}})
	m.Handle("/", nothing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path { // which the multiplexer would mend, with a redirect
			nothing.ServeHTTP(w, r)
			return
		}
		m.ServeHTTP(w, r)
	})
}

// guard lets those in who may, and words errors.
func (h *Handler) guard(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := w.(*answer)
		a.route = rt.path
		err := h.allowed(rt, r, a)
		if err == nil && rt.access > Open {
			err = h.spend(w, r)
		}
		if err == nil && rt.method != http.MethodPost && rt.method != http.MethodPut && r.ContentLength != 0 {
			err = problem(http.StatusBadRequest, "", "nothing is read here: want no body")
		}
		if err == nil {
			err = rt.serve(h, w, r)
		}
		if err == nil {
			return
		}
		p := problemOf(err)
		if p.Field == "client" && strings.Contains(rt.path, "{name}") { // as the path calls it
			p.Field = "name"
		}
		if p.Status >= http.StatusInternalServerError {
			a.err = err
		}
		if a.status == 0 { // otherwise the answer has begun, and is cut off
			refuse(w, r, a, p)
		}
	})
}

// refuse sends a problem without waiting for the rest of the body. The server would wait, to use
// the connection again, and a client without a token could then hold every connection with half of
// a request.
func refuse(w http.ResponseWriter, r *http.Request, a *answer, p *Problem) {
	if r.ContentLength == 0 || a.wholly {
		p.write(w)
		return
	}
	w.Header().Set("Connection", "close")
	p.write(w)
	out := http.NewResponseController(w)
	_ = out.Flush()                          // who does not read it has gone
	_ = out.SetReadDeadline(time.Unix(1, 0)) // a writer without deadlines has no connection to wait for
}

// crossSite refuses what a browser sends on behalf of another site's page: whatever the
// method, as a picture's address can ask for work too. A link to our page is no such
// request. Browsers that do not say which site asks (Sec-Fetch-Site,
// https://www.w3.org/TR/fetch-metadata/) may say the origin.
func crossSite(rt route, r *http.Request) error {
	switch from := r.Header.Get("Sec-Fetch-Site"); from {
	case "same-origin", "none":
		return nil
	case "":
	default:
		if rt.path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			return nil
		}
		return problem(http.StatusForbidden, "Sec-Fetch-Site", "%.20q: want a request of this server's own page", from)
	}
	origin := r.Header.Get("Origin")
	if u, err := url.Parse(origin); origin != "" && (err != nil || u.Host != r.Host) {
		return problem(http.StatusForbidden, "Origin", "%.100q: want a request of this server's own page", origin)
	}
	return nil
}

// allowed tells why a request is not to be answered.
func (h *Handler) allowed(rt route, r *http.Request, a *answer) error {
	name, all, known := peerOf(r)
	if !known && h.tokens.Load().None() && !local(r.Host) {
		return problem(http.StatusForbidden, "Host", "%.100q: without tokens, only localhost is answered", r.Host)
	}
	if err := crossSite(rt, r); err != nil {
		return err
	}
	var err error
	if known && h.tokens.Load().None() {
		a.clients, err = ofPeer(name, all, rt.access)
	} else {
		a.clients, err = h.tokens.Load().check(r, rt.access)
	}
	if err != nil {
		return err
	}
	switch {
	case rt.access == Open || rt.path == "/metrics":
	case h.running.Load() == nil:
		return problem(http.StatusServiceUnavailable, "", "the machine is being started")
	case rt.access > Read && h.drains.Load():
		return problem(http.StatusServiceUnavailable, "", "the service is stopping")
	}
	return nil
}

// ServeHTTP answers a request, whatever happens in it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, id: rand.Text()[:16], began: time.Now(), trace: traceOf(r)}
	header := w.Header()
	header.Set(requestIDHeader, a.id)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	defer func() {
		switch broken := recover(); broken {
		case nil:
			h.done(a, r)
		case http.ErrAbortHandler:
			panic(broken)
		default:
			a.err = errPanicked
			h.cfg.Log.Error("panic", zap.String("request_id", a.id), zap.Any("panic", broken),
				zap.ByteString("stack", debug.Stack()))
			if a.status == 0 {
				problemOf(a.err).write(a)
			}
			h.done(a, r)
		}
	}()
	h.routes.ServeHTTP(a, r)
}

// respond answers with v, unless there was an error.
func respond(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, v)
}

// send answers with JSON.
func send(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // who does not read it has gone
	return nil
}
