// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/service"
)

const (
	fullToken = "full-0123456789abcdef"
	readToken = "read-0123456789abcdef"
	ownToken  = "own-0123456789abcdef"
)

func tokens(t testing.TB, text string) Tokens {
	t.Helper()
	tokens, err := ReadTokens(strings.NewReader(text), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// TestTokens: who may do what, on every route. No token is ever in the log.
func TestTokens(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) {
		c.Tokens = tokens(t, "# ours\n\nfull "+fullToken+"\nread "+readToken+"\nown "+ownToken+" a b\n")
	})
	for _, r := range routes() {
		path := strings.NewReplacer("{id}", "99", "{name}", "a", "{ops}", "o").Replace(r.path)
		if path == "/v1/events" {
			path += "?after=x" // which is answered at once
		}
		for _, c := range []struct {
			token string
			has   Access
		}{{"", Open}, {"wrong-0123456789abcdef", Open}, {readToken, Read}, {ownToken, Own}, {fullToken, Full}} {
			w.token = c.token
			var body any
			if r.method == "POST" || r.method == "PUT" {
				body = "{}" // wrong, once it is let in
			}
			got := w.do(r.method, path, body).status
			want := 0 // anything else
			switch {
			case r.access > c.has && c.has == Open:
				want = 401
			case r.access > c.has:
				want = 403
			}
			if refused := got == 401 || got == 403; refused != (want != 0) || refused && got != want {
				t.Errorf("%s %s with %q: %d", r.method, path, c.token, got)
			}
		}
	}
	w.token = readToken
	if r := w.do("GET", "/v1/updates?state="+fullToken, nil); r.status != 400 {
		t.Errorf("%+v", r)
	}
	w.token = ""
	if r := w.do("GET", "/v1/stats", nil); r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%+v", r)
	}
	w.http.Close()
	if s := w.log.String(); !strings.Contains(s, `"status":403`) || strings.Contains(s, "0123456789abcdef") {
		t.Errorf("the log: %s", s)
	}
}

// TestReadTokens: errors name file and line, and no token.
func TestReadTokens(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "tokens: there is no token in it"},
		{"# nothing\n", "tokens: there is no token in it"},
		{"full short-secret\n", "tokens:1: the token has 12 characters, want at least 16"},
		{"\nsecret-0123456789abcdef\n", "tokens:2: want full or read and a token, or own, a token, and names of clients"},
		{"admin secret-0123456789abcdef\n", "tokens:1: want full or read and a token, or own, a token, and names of clients"},
		{"full secret-0123456789abcdef more\n", "tokens:1: want full or read and a token, or own, a token, and names of clients"},
		{"own secret-0123456789abcdef\n", "tokens:1: want full or read and a token, or own, a token, and names of clients"},
		{"full " + strings.Repeat("secret", 20000), "tokens: bufio.Scanner: token too long"},
	} {
		_, err := ReadTokens(strings.NewReader(c.text), "tokens")
		if err == nil || err.Error() != c.want {
			t.Errorf("%.40q: %v, want %s", c.text, err, c.want)
		}
	}
	both := tokens(t, "read "+fullToken+"\nfull "+fullToken+"\n")
	if got, _ := both.access(fullToken); got != Full {
		t.Errorf("a token that is there twice allows %v", got)
	}
}

// TestOtherSites: without tokens, a page elsewhere cannot make a browser ask.
func TestOtherSites(t *testing.T) {
	w := ready(t)
	for _, c := range []struct {
		name, host, header, value string
		want                      int
	}{
		{"this machine", "", "", "", 202},
		{"by name", "localhost:7070", "", "", 202},
		{"by its other address", "[::1]:7070", "", "", 202},
		{"without a port", "[::1]", "", "", 202},
		{"a name of their own for it", "evil.example", "", "", 403},
		{"one that looks like it", "localhost.evil.example:7070", "", "", 403},
		{"no host", "[", "", "", 403},
		{"another origin", "", "Origin", "http://evil.example", 403},
		{"says the browser", "", "Sec-Fetch-Site", "cross-site", 403},
		{"our own page", "", "Sec-Fetch-Site", "same-origin", 202},
	} {
		req, err := http.NewRequest("POST", w.http.URL+"/v1/updates",
			strings.NewReader(request("a", true, `,"filter":["fn1"]`)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if c.host != "" {
			req.Host = c.host
		}
		if c.header != "" {
			req.Header.Set(c.header, c.value)
		}
		if r := w.send(req); r.status != c.want && !(c.host == "[" && r.status == 400) { // net/http may refuse that one
			t.Errorf("%s: %d, want %d: %s", c.name, r.status, c.want, r.body)
		}
	}
}

// TestNamesAreBound: a token that names clients asks for their updates and cancels them,
// and nobody else's.
func TestNamesAreBound(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) {
		c.Tokens = tokens(t, "full "+fullToken+"\nown "+ownToken+" a b\n")
	})
	as := func(token, method, path string, body any) int {
		t.Helper()
		w.token = token
		return w.do(method, path, body).status
	}
	for _, c := range []struct {
		token, client string
		want          int
	}{{ownToken, "a", 202}, {ownToken, "b", 202}, {ownToken, "c", 403}, {ownToken, "", 403}, {fullToken, "c", 202}} {
		if got := as(c.token, "POST", "/v1/updates", request(c.client, true, `,"filter":["fn1"]`)); got != c.want {
			t.Errorf("%s asks as %q: %d, want %d", c.token, c.client, got, c.want)
		}
	}
	is[Update](w.do("GET", "/v1/updates/3?wait=true", nil), 200) // nothing is queued any more
	for path, want := range map[string]int{"/v1/updates/1": 409, "/v1/updates/3": 403, "/v1/updates/99": 404} {
		if got := as(ownToken, "DELETE", path, nil); got != want {
			t.Errorf("it cancels %s: %d, want %d", path, got, want)
		}
	}
	if got := as(ownToken, "PUT", "/v1/cpus/1", `{"online":false}`); got != 403 {
		t.Errorf("it unplugs a CPU: %d", got)
	}
}
