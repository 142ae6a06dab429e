// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// TestOneUpdate goes through everything that can be asked of updates.
func TestOneUpdate(t *testing.T) {
	w := ready(t)
	u := is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["fn1*"],"key":"k","wait":true`)), 200)
	// fn1 and fn10 to fn19, of fn0 to fn99.
	if u.State != "live" || u.Records != 11 || u.Ops != "function" || u.Batch == 0 {
		t.Errorf("%+v", u)
	}
	again := is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["fn1*"],"key":"k"`)), 202)
	if again.ID != u.ID {
		t.Errorf("the same key gave %d and %d", u.ID, again.ID)
	}
	if p := is[Problem](w.do("POST", "/v1/updates", request("a", false, `,"filter":["fn1*"],"key":"k"`)),
		409); p.Field != "key" {
		t.Errorf("%+v", p)
	}
	accepted := w.do("POST", "/v1/updates", request("b", false, `,"records":["fn5"]`))
	if got, want := accepted.header.Get("Location"), "/v1/updates/2"; got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	is[Update](accepted, 202)
	if one := is[Update](w.do("GET", "/v1/updates/2?wait=true", nil), 200); one.State != "live" {
		t.Errorf("%+v", one)
	}
	page := is[Updates](w.do("GET", "/v1/updates?limit=1", nil), 200)
	if len(page.Updates) != 1 || page.Next != 1 {
		t.Errorf("first page: %+v", page)
	}
	page = is[Updates](w.do("GET", "/v1/updates?limit=1&after=1", nil), 200)
	if len(page.Updates) != 1 || page.Updates[0].ID != 2 || page.Next != 0 {
		t.Errorf("last page: %+v", page)
	}
	if page = is[Updates](w.do("GET", "/v1/updates?state=live&client=b", nil), 200); len(page.Updates) != 1 {
		t.Errorf("b's: %+v", page)
	}
	is[Problem](w.do("DELETE", "/v1/updates/1", nil), 409)
	is[Problem](w.do("DELETE", "/v1/updates/77", nil), 404)
	is[Problem](w.do("GET", "/v1/updates/77", nil), 404)
}

// TestMachine asks for records, CPUs and counters.
func TestMachine(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["fn2*"],"wait":true`)), 200)
	var seen, enabled int
	next := ""
	for {
		page := is[Records](w.do("GET", "/v1/records?limit=30"+next, nil), 200)
		for i, r := range page.Records {
			if r.Index != seen+i || r.Enabled != strings.HasPrefix(r.Symbol, "fn2") || r.Enabled != (r.Users == 1) {
				t.Errorf("%+v", r)
			}
			if r.Enabled {
				enabled++
			}
		}
		seen += len(page.Records)
		if page.Next == nil {
			break
		}
		next = fmt.Sprintf("&after=%d", *page.Next)
	}
	if seen != 100 || enabled != 11 {
		t.Errorf("%d records, %d enabled", seen, enabled)
	}
	if r := is[Records](w.do("GET", "/v1/records?filter=fn3&filter=fn4", nil), 200); len(r.Records) != 2 {
		t.Errorf("%+v", r)
	}
	// 11 patches in vectors of 4: three batches, three rounds each, two other CPUs.
	cost := is[Compare](w.do("GET", "/v1/compare?buffers=4,dynamic", nil), 200)
	if len(cost.Costs) != 2 || cost.Records != 11 || cost.Costs[0].Rounds < 9 ||
		cost.Costs[0].IPIs != 2*cost.Costs[0].Rounds {
		t.Errorf("%+v", cost)
	}
	stats := is[Stats](w.do("GET", "/v1/stats", nil), 200)
	cpus := is[CPUs](w.do("GET", "/v1/cpus", nil), 200)
	var taken, sent uint64
	for _, c := range cpus.CPUs {
		sent += c.RoundsSent
		for _, n := range c.Taken {
			taken += n
		}
	}
	if len(cpus.CPUs) != 3 || stats.Enabled != 11 || stats.Requests != 1 || taken != stats.IPIs || sent != stats.Rounds ||
		taken != 2*sent {
		t.Errorf("%+v %+v", stats, cpus)
	}
	if c := is[CPU](w.do("PUT", "/v1/cpus/2", `{"online":false}`), 200); c.Online {
		t.Errorf("%+v", c)
	}
	is[CPU](w.do("PUT", "/v1/cpus/2", `{"online":false}`), 200) // again
	is[CPU](w.do("PUT", "/v1/cpus/1", `{"online":false}`), 200)
	is[Problem](w.do("PUT", "/v1/cpus/0", `{"online":false}`), 409) // the last one
	is[CPU](w.do("PUT", "/v1/cpus/1", `{"online":true}`), 200)
	text := w.do("GET", "/v1/interrupts", nil)
	if !strings.Contains(text.body, "CPU1") || strings.Contains(text.body, "CPU2") {
		t.Errorf("an unplugged CPU is shown: %s", text.body)
	}
	is[CPU](w.do("PUT", "/v1/cpus/2", `{"online":true}`), 200)
	exposed := w.do("GET", "/metrics", nil)
	for _, line := range []string{
		"textpoke_requests_total 1", "textpoke_enabled_records 11", fmt.Sprintf("textpoke_interrupts_total %d", taken),
		`textpoke_http_requests_total{method="PUT",route="/v1/cpus/{id}",status="200"} 5`,
	} {
		if !strings.Contains(exposed.body, line+"\n") {
			t.Errorf("/metrics has no %s", line)
		}
	}
}

// TestProblems: what is wrong is named.
func TestProblems(t *testing.T) {
	w := ready(t, func(_ *service.Config, c *Config) { c.Limits.Body = 2000 })
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"POST", "/v1/updates", `{"enable":true,"filter":["*"]}`, 400, "client"},
		{"POST", "/v1/updates", `{"client":"a","filter":["*"]}`, 400, "enable"},
		{"POST", "/v1/updates", request("a", true, ""), 400, "records"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["x"],"records":["fn1"]`), 400, "records"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["no_such"]`), 400, "filter"},
		{"POST", "/v1/updates", request("a", true, `,"records":["no_such"]`), 400, "records"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["a\u0000b"]`), 400, "filter[0]"},
		{"POST", "/v1/updates", request("a", true, `,"filter":[`+strings.Repeat(`"a",`, maxPatterns)+`"b"]`), 400, "filter"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["`+strings.Repeat("a", maxText+1)+`"]`), 400, "filter[0]"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["*"],"deadline":"2001-01-01T00:00:00Z"`), 400, "deadline"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["*"],"deadline":"0001-01-01T00:00:00Z"`), 400, "deadline"},
		{"POST", "/v1/updates", request("a", true, `,"filter":["*"],"nonsense":1`), 400, "nonsense"},
		{"POST", "/v1/updates", request("a", true, `,"filter":7`), 400, "filter"},
		{"POST", "/v1/updates", request("a\nb", true, `,"filter":["*"]`), 400, "client"},
		{"POST", "/v1/updates", request(strings.Repeat("a", 300), true, `,"filter":["*"]`), 400, "client"},
		{"POST", "/v1/updates", `{`, 400, ""},
		{"POST", "/v1/updates", ``, 400, ""},
		{"POST", "/v1/updates", `[]`, 400, ""},
		{"POST", "/v1/updates", `{"client":"a"} {}`, 400, ""},
		{"POST", "/v1/updates", request("a", true, `,"filter":["`+strings.Repeat("a", 3000)+`"]`), 413, ""},
		{"GET", "/v1/updates?limit=0", "", 400, "limit"},
		{"GET", "/v1/updates?limit=1001", "", 400, "limit"},
		{"GET", "/v1/updates?limit=1&limit=2", "", 400, "limit"},
		{"GET", "/v1/updates?after=x", "", 400, "after"},
		{"GET", "/v1/updates?state=alive", "", 400, "state"},
		{"GET", "/v1/updates?nonsense=1", "", 400, "nonsense"},
		{"GET", "/v1/updates?%zz", "", 400, ""},
		{"GET", "/v1/updates/x", "", 400, "id"},
		{"GET", "/v1/updates/1?wait=maybe", "", 400, "wait"},
		{"GET", "/v1/records?filter=" + strings.Repeat("a", 1001), "", 400, "filter[0]"},
		{"GET", "/v1/compare?buffers=0", "", 400, "buffers[0]"},
		{"GET", "/v1/compare?buffers=" + strings.Repeat("1,", 16) + "1", "", 400, "buffers"},
		{"PUT", "/v1/cpus/77", `{"online":false}`, 400, "id"},
		{"PUT", "/v1/cpus/1", `{}`, 400, "online"},
		{"GET", "/v1/events?after=-1", "", 400, "after"},
		{"POST", "/v1/experiments", `{"name":"nonsense"}`, 400, "name"},
		{"POST", "/v1/experiments", `{"name":"answer","config":{"published":"/etc/passwd"}}`, 400, "config.published"},
		{"POST", "/v1/experiments", `{"name":"answer","config":{"some_numbers":[1,10]}}`, 400, "config.some_numbers"},
		{"POST", "/v1/experiments", `{"name":"answer","config":{"nothing":true}}`, 400, "config.nothing"},
		{"POST", "/v1/experiments", `{}`, 400, "name"},
		{"GET", "/v1/results/1", "", 404, ""},
		{"DELETE", "/v1/results/1", "", 404, ""},
		{"GET", "/v1/results/1/files/..%2f..%2fetc%2fpasswd", "", 404, ""},
		{"GET", "/v1/nonsense", "", 404, ""},
		{"PATCH", "/v1/updates", "", 405, ""},
		{"POST", "/v1/stats", "", 405, ""},
	} {
		var body any
		if c.method == "POST" || c.method == "PUT" {
			body = c.body
		}
		p := is[Problem](w.do(c.method, c.path, body), c.status)
		if p.Field != c.field || p.Status != c.status || p.Detail == "" || p.RequestID == "" {
			t.Errorf("%s %s %.60s: field %q, want %q: %+v", c.method, c.path, c.body, p.Field, c.field, p)
		}
	}
	req, err := http.NewRequest("POST", w.http.URL+"/v1/updates", strings.NewReader(request("a", true, `,"filter":["*"]`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain") // what a page elsewhere may send
	if p := is[Problem](w.send(req), 415); p.Field != "Content-Type" {
		t.Errorf("%+v", p)
	}
	if s := is[Stats](w.do("GET", "/v1/stats", nil), 200); s.Requests != 0 || s.Queued != 0 {
		t.Errorf("a wrong request did something: %+v", s)
	}
}

// TestOpen asks for what is about the server itself, before and after its life.
func TestOpen(t *testing.T) {
	w := newWorld(t)
	is[Health](w.do("GET", "/healthz", nil), 200)
	if h := is[Health](w.do("GET", "/readyz", nil), 503); h.Status != "starting" {
		t.Errorf("%+v", h)
	}
	if r := w.do("GET", "/v1/stats", nil); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("%+v", r)
	}
	if r := w.do("GET", "/metrics", nil); r.status != 200 || strings.Contains(r.body, "textpoke_queued") {
		t.Errorf("before the machine runs: %+v", r)
	}
	w.handler.Ready(w.service, w.lab)
	is[Health](w.do("GET", "/readyz", nil), 200)
	if v := is[Version](w.do("GET", "/version", nil), 200); v.Revision != "abc" {
		t.Errorf("%+v", v)
	}
	is[map[string]any](w.do("GET", "/openapi.json", nil), 200)
	if r := w.do("GET", "/", nil); r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Security-Policy"),
		"default-src 'none'") {
		t.Errorf("%+v", r)
	}
	w.handler.Drain()
	if h := is[Health](w.do("GET", "/readyz", nil), 503); h.Status != "draining" {
		t.Errorf("%+v", h)
	}
	is[Problem](w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"]`)), 503)
	is[Stats](w.do("GET", "/v1/stats", nil), 200) // questions are still answered
}

// TestTimesAreExplained: an answer to a wrong time says how a time is written.
func TestTimesAreExplained(t *testing.T) {
	p := is[Problem](ready(t).do("POST", "/v1/updates", request("a", true, `,"filter":["*"],"deadline":"tomorrow"`)), 400)
	if p.Field != "deadline" || !strings.Contains(p.Detail, "RFC 3339") {
		t.Errorf("%+v", p)
	}
}

// TestDeadlineIsShown: also one beyond 2262, where 64 bits of nanoseconds end.
func TestDeadlineIsShown(t *testing.T) {
	w := ready(t)
	const last = "9999-12-31T23:59:59.999999999Z"
	u := is[Update](w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"],"wait":true,"deadline":"`+last+`"`)), 200)
	if got := u.Deadline.Format(time.RFC3339Nano); got != last || u.State != "live" {
		t.Errorf("deadline %s, %s", got, u.State)
	}
	if got := is[Update](w.do("GET", "/v1/updates/1", nil), 200); !got.Deadline.Equal(u.Deadline) {
		t.Errorf("%+v", got)
	}
}

// TestIdempotencyKey: the header is another place for the key.
func TestIdempotencyKey(t *testing.T) {
	w := ready(t)
	ask := func(body, key string) reply {
		return w.do("POST", "/v1/updates", body, "Idempotency-Key", key)
	}
	body := `{"client":"a","enable":true,"filter":["*"]}`
	first := is[Update](ask(body, `"k1"`), 202)
	if again := is[Update](ask(body, "k1"), 202); again.ID != first.ID || again.Key != "k1" {
		t.Errorf("%+v, want %+v", again, first)
	}
	for _, wrong := range []reply{ask(body, `""`), ask(`{"client":"a","key":"k","enable":true,"filter":["*"]}`, "k1")} {
		if p := is[Problem](wrong, 400); p.Field != "Idempotency-Key" {
			t.Errorf("%+v", p)
		}
	}
}
