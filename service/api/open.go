// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var document []byte

// Document is the OpenAPI document.
func Document() []byte { return document }

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

func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request) error {
	return send(w, http.StatusOK, Health{"ok"})
}

func (h *Handler) readyz(w http.ResponseWriter, _ *http.Request) error {
	status := h.status()
	if status != "ok" {
		return send(w, http.StatusServiceUnavailable, Health{status})
	}
	return send(w, http.StatusOK, Health{status})
}

func (h *Handler) version(w http.ResponseWriter, _ *http.Request) error {
	return send(w, http.StatusOK, h.cfg.Version)
}
