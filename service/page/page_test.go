// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestServe: who asks gets the page, under a policy that admits what is inside.
func TestServe(t *testing.T) {
	w := httptest.NewRecorder()
	Serve(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 200 || w.Body.String() != html {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
		if got := w.Result().Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for element, within := range map[string]*regexp.Regexp{"script": regexp.MustCompile(`(?s)<script>(.*)</script>`),
		"style": regexp.MustCompile(`(?s)<style>(.*)</style>`)} {
		sum := sha256.Sum256([]byte(within.FindStringSubmatch(html)[1]))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(Policy, want) {
			t.Errorf("%s: want %s", Policy, want)
		}
	}
	if got := w.Result().Header.Get("Content-Security-Policy"); got != Policy || strings.Contains(got, "unsafe") ||
		strings.Count(got, "'sha256-") != 2 {
		t.Errorf("policy %q", got)
	}
}

// TestOneFile: nothing is asked of anybody else, and nothing that the policy would
// refuse is there: one style, one script, no attributes that hold either.
func TestOneFile(t *testing.T) {
	for _, once := range []string{"<style>", "<script>"} {
		if n := strings.Count(html, once); n != 1 {
			t.Errorf("%s: %d times", once, n)
		}
	}
	for _, never := range []string{`<link rel="stylesheet"`, "@import", "url(", " style=", " onclick=", "javascript:",
		"innerHTML", "eval("} {
		if strings.Contains(html, never) {
			t.Errorf("there is %s", never)
		}
	}
	for _, attribute := range regexp.MustCompile(`\s(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if to := attribute[1]; !strings.HasPrefix(to, "#") && !strings.HasPrefix(to, "data:") {
			t.Errorf("%s leads elsewhere", attribute[0])
		}
	}
}

// luminance is the relative luminance of a colour #rrggbb (WCAG 2.2, relative
// luminance).
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil || len(colour) != 7 {
		t.Fatalf("colour %q", colour)
	}
	linear := func(part uint64) float64 {
		c := float64(part&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(v>>16) + 0.7152*linear(v>>8) + 0.0722*linear(v)
}

// TestContrast holds the colours of both schemes against WCAG 2.2: 4.5 for text
// (1.4.3), 3 for what is drawn (1.4.11).
func TestContrast(t *testing.T) {
	blocks := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(html, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d schemes, want light and dark", len(blocks))
	}
	for i, scheme := range []string{"light", "dark"} {
		colours := map[string]float64{}
		for _, v := range regexp.MustCompile(`--(\w+): (#\w+);`).FindAllStringSubmatch(blocks[i][1], -1) {
			colours[v[1]] = luminance(t, v[2])
		}
		for _, c := range []struct {
			front, back string
			least       float64
		}{
			{"ink", "paper", 4.5}, {"ink", "card", 4.5}, {"soft", "paper", 4.5}, {"soft", "card", 4.5}, {"key", "card", 4.5},
			{"onkey", "key", 4.5}, {"good", "card", 4.5}, {"bad", "card", 4.5}, {"bad", "paper", 4.5},
			{"interrupt", "card", 3}, {"round", "card", 3}, {"trap", "card", 3}, {"step", "card", 3},
		} {
			front, back := colours[c.front], colours[c.back]
			if ratio := (max(front, back) + 0.05) / (min(front, back) + 0.05); ratio < c.least {
				t.Errorf("%s: %s on %s has %.2f, want %.1f", scheme, c.front, c.back, ratio, c.least)
			}
		}
	}
}
