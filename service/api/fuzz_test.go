// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/service"
)

// atRest leaves the cores to the fuzzer: no CPU of the machine is busy.
func atRest(t testing.TB) func(*service.Config, *Config) {
	return func(c *service.Config, _ *Config) { c.Machine = small(t, "idle=3").Machine }
}

// answered has a request answered in this goroutine and holds the answer against
// the document: whatever was asked, nothing fails inside.
func (w *world) answered(t *testing.T, method, path, query, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body)).WithContext(t.Context())
	req.URL = &url.URL{Scheme: "http", Host: "localhost", Path: path, RawQuery: query}
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, req)
	if rec.Code >= 500 {
		t.Errorf("%s %s?%s %q: %d %s", method, path, query, body, rec.Code, rec.Body)
	}
	resp := rec.Result()
	defer resp.Body.Close()
	if err := (&contract{t, nil}).check(req, resp); err != nil {
		t.Errorf("%s %s?%s %q: %v", method, path, query, body, err)
	}
	return rec
}

// FuzzBody sends any body to whatever takes one. One that the document refuses is
// not accepted.
func FuzzBody(f *testing.F) {
	targets := []struct{ method, path, schema string }{
		{"POST", "/v1/updates", "Request"}, {"PUT", "/v1/cpus/1", "Plug"}, {"POST", "/v1/experiments", "Start"},
	}
	for i, body := range []string{
		request("a", true, `,"filter":["fn1*"],"key":"k"`), `{"online":true}`, `{"name":"fail","seed":3,"config":{"some_numbers":[1,"2"]}}`,
	} {
		f.Add(uint8(i), body)
	}
	for _, body := range []string{
		"", "{", "null", "[]", `{"client":1}`, `{"client":"a","enable":null}`, `{"enable":true,"client":"a","filter":["[", "!", ":mod:"]}`,
		request("a", true, `,"records":["0x","fn1",""]`), request("a", true,
			`,"deadline":"x"`), `{"online":1e999}`, `{"name":"\ud800"}`, `{"seed":-1}`, `{"name":"fail","config":{"some_numbers":{}}}`, `{"name":"fail","config":{"some_numbers":[null]}}`, `{"name":"fail","config":null}`,
	} {
		for i := range targets {
			f.Add(uint8(i), body)
		}
	}
	w := ready(f, atRest(f))
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		c := targets[int(which)%len(targets)]
		rec := w.answered(t, c.method, c.path, "", body)
		if rec.Code >= 300 {
			return
		}
		// encoding/json takes names in any case, and mends what is not UTF-8.
		if err := valid("/components/schemas/"+c.schema, []byte(body)); err != nil && strings.ToLower(body) == body &&
			!strings.Contains(body, `\`) {
			t.Errorf("%s accepts %q, and the document does not: %v", c.path, body, err)
		}
	})
}

// FuzzQuery asks with any path and any query.
func FuzzQuery(f *testing.F) {
	for _, s := range [][2]string{
		{"/v1/updates", "limit=1&after=2&state=live"}, {"/v1/updates/1", "wait=false"}, {"/v1/records",
			"filter=fn*&filter=!fn1"},
		{"/v1/records", "filter=[a-&limit=3"}, {"/v1/compare", "buffers=1,dynamic"}, {"/v1/results/1/files/x",
			""}, {"//v1//updates", ""},
		{"/v1/updates/../cpus", "%"}, {"/v1/interrupts", ";"}, {"/v1/results", "after=9223372036854775807"}, {"",
			""}, {"/metrics", "name[]=x"},
	} {
		f.Add(s[0], s[1])
	}
	w := ready(f, atRest(f))
	f.Fuzz(func(t *testing.T, path, query string) {
		if strings.HasPrefix(path, "/v1/events") || !strings.HasPrefix(path, "/") {
			return // a stream does not end, and a path begins so in every request
		}
		w.answered(t, "GET", path, query, "")
	})
}
