// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"net/http"
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
