// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

//go:embed openapi.json
var document []byte

func (h *Handler) page(w http.ResponseWriter, r *http.Request) error {
	if h.cfg.Page == nil {
		return problem(http.StatusNotFound, "", "this server has no page")
	}
	h.cfg.Page.ServeHTTP(w, r)
	return nil
}

func (h *Handler) openapi(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document)
	return nil
}

// healthz tells whether the process is worth keeping: one that has broken down is
// not, though it will end by itself.
func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request) error {
	if now := h.health(); now.Status == "broken" {
		return send(w, http.StatusServiceUnavailable, now)
	}
	return send(w, http.StatusOK, Health{Status: "ok"})
}

func (h *Handler) readyz(w http.ResponseWriter, _ *http.Request) error {
	now := h.health()
	if now.Status != "ok" {
		return send(w, http.StatusServiceUnavailable, now)
	}
	return send(w, http.StatusOK, now)
}

func (h *Handler) version(w http.ResponseWriter, _ *http.Request) error {
	return send(w, http.StatusOK, h.cfg.Version)
}

// maxProfile is how many seconds a profile may take: less than an answer may.
const maxProfile = 30

// profile answers as /debug/pprof does (https://pkg.go.dev/net/http/pprof), to full tokens only: a
// server without tokens refuses it.
func (h *Handler) profile(w http.ResponseWriter, r *http.Request) error {
	p := newParams(r)
	p.number("seconds", 0, 1, maxProfile)
	p.number("debug", 0, 0, 2)
	if err := p.check(); err != nil {
		return err
	}
	if h.tokens.Load().None() {
		return problem(http.StatusForbidden, "Authorization", "profiles want a full token, and this server has no tokens")
	}
	switch name := r.PathValue("name"); {
	case name == "profile":
		pprof.Profile(w, r)
	case name == "trace":
		pprof.Trace(w, r)
	case runtimepprof.Lookup(name) != nil:
		pprof.Handler(name).ServeHTTP(w, r)
	default:
		return problem(http.StatusNotFound, "name", "%.40q: want profile, trace, heap, goroutine or another of runtime/pprof", name)
	}
	return nil
}
