// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
)

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
