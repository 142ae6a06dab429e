// SPDX-License-Identifier: Apache-2.0

// Package page holds the service's page at /: one HTML file with its style and its script inside,
// which asks only the server that it came from.
//
// All figures are of one answer of /v1/status, so that they agree with each other. The
// tracks follow /v1/events, a sample. /v1/compare and /v1/experiments have the rest.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// html is the page.
//
//go:embed index.html
var html string

// Policy is the page's Content-Security-Policy: its own style and script, known
// by their hashes, its own server, and pictures that it has fetched from there.
var Policy = fmt.Sprintf(
	"default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data: blob:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	hash("script"),
	hash("style"),
)

// hash is that of the text inside an element, as a policy spells it (Content
// Security Policy Level 3, section 2.3.1).
func hash(element string) string {
	_, text, _ := strings.Cut(html, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Serve answers a request for the page.
func Serve(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", Policy)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write([]byte(html)) // who has gone needs no page
}
