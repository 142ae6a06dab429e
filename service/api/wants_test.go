// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// TestWhoWants: a record says who wants it, a client what it wants, and both are today's.
func TestWhoWants(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1","fn2"],"wait":true`)), 200)
	is[Update](w.do("POST", "/v1/updates", request("b", true, `,"records":["fn2"],"ops":"o","wait":true`)), 200)
	got := is[RecordWants](w.do("GET", "/v1/records/fn2/wants", nil), 200)
	if len(got.Records) != 1 || got.Records[0].Users != 2 || len(got.Wants) != 2 || got.Wants[1].Client != "b" ||
		got.Wants[1].Ops != "o" {
		t.Errorf("%+v", got)
	}
	if got := is[RecordWants](w.do("GET", "/v1/records/fn3/wants", nil), 200); len(got.Wants) != 0 || len(got.Records) != 1 {
		t.Errorf("%+v", got)
	}
	is[Problem](w.do("GET", "/v1/records/nothing/wants", nil), 404)
	if c := is[Client](w.do("GET", "/v1/clients/a", nil), 200); len(c.Wants) != 1 || c.Wants[0].Records != 2 || len(c.Updates) != 0 {
		t.Errorf("%+v", c)
	}
	if c := is[Client](w.do("GET", "/v1/clients/nobody", nil), 200); len(c.Wants) != 0 {
		t.Errorf("%+v", c)
	}
}

// TestWish: what is put is on and all else is off, with one update; of two who have seen the same,
// one changes it.
func TestWish(t *testing.T) {
	w := ready(t)
	const path = "/v1/clients/a/ops/o"
	first := w.do("PUT", path, `{"records":["fn1","fn2"],"wait":true}`)
	if u := is[Update](first, 200); u.State != "live" || !u.Set {
		t.Errorf("%+v", u)
	}
	before := w.service.Stats().Updates
	tag := first.header.Get("ETag")
	if seen := w.do("GET", path, nil); seen.header.Get("ETag") != tag || len(is[Ops](seen, 200).Records) != 2 {
		t.Errorf("%+v", seen)
	}
	is[Update](w.do("PUT", path, `{"records":["fn2","fn3"],"wait":true}`, "If-Match", tag), 200)
	if n := w.service.Stats().Updates - before; n != 1 {
		t.Errorf("%d updates of the text, want 1", n)
	}
	if p := is[Problem](w.do("PUT", path, `{"records":["fn9"]}`, "If-Match", tag), 412); p.Field != "If-Match" {
		t.Errorf("%+v", p)
	}
	is[Problem](w.do("PUT", path, `{"records":["fn9"]}`, "If-Match", "*"), 400)
	is[Problem](w.do("PUT", path, `{"records":["nothing"]}`), 400)
	got := is[Ops](w.do("GET", path, nil), 200)
	if len(got.Records) != 2 || got.Records[0].Symbol != "fn2" || got.Records[1].Symbol != "fn3" {
		t.Errorf("%+v", got)
	}
	is[Update](w.do("PUT", path, `{"wait":true}`), 200)
	if c := is[Client](w.do("GET", "/v1/clients/a", nil), 200); len(c.Wants) != 0 || w.service.Stats().Enabled != 0 {
		t.Errorf("%+v", c)
	}
}

// TestDryRun: the price is that of the update that follows, and asking for it changes nothing.
func TestDryRun(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("b", true, `,"records":["fn1"],"wait":true`)), 200)
	before := w.service.Stats()
	p := is[Plan](w.do("POST", "/v1/updates?dry-run=true", request("a", true, `,"records":["fn1","fn2","fn3"]`)), 200)
	if p.Records != 3 || p.Changes != 2 || p.Others != 1 || p.Rounds == 0 || w.service.Stats() != before {
		t.Errorf("%+v", p)
	}
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1","fn2","fn3"],"wait":true`)), 200)
	after := w.service.Stats()
	if int(after.Rounds-before.Rounds) != p.Rounds || int(after.IPIs-before.IPIs) != p.IPIs || int(after.Changes-before.Changes) != p.Changes {
		t.Errorf("%+v, and then %+v after %+v", p, after, before)
	}
	if p := is[Plan](w.do("POST", "/v1/updates?dry-run=true", request("a", false, `,"records":["fn1"]`)), 200); p.Changes != 0 || p.Rounds != 0 {
		t.Errorf("who is not alone switches nothing: %+v", p)
	}
	is[Problem](w.do("POST", "/v1/updates?dry-run=yes", request("a", true, `,"filter":["*"]`)), 400)
}

// TestNewestFirst: lists go both ways, page by page.
func TestNewestFirst(t *testing.T) {
	w := ready(t)
	for range 5 {
		is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"wait":true`)), 200)
	}
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"ops":"o","wait":true`)), 200)
	first := is[Updates](w.do("GET", "/v1/updates?newest=true&limit=2", nil), 200)
	if len(first.Updates) != 2 || first.Updates[0].ID != 6 || first.Next != 5 {
		t.Errorf("%+v", first)
	}
	if next := is[Updates](w.do("GET", "/v1/updates?newest=true&limit=2&before=5", nil), 200); next.Updates[0].ID != 4 || next.Next != 3 {
		t.Errorf("%+v", next)
	}
	if o := is[Updates](w.do("GET", "/v1/updates?ops=o", nil), 200); len(o.Updates) != 1 || o.Updates[0].ID != 6 {
		t.Errorf("%+v", o)
	}
}

// TestRenew: a lease is told, and a renewal puts its end off.
func TestRenew(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"lease":1000,"wait":true`)), 200)
	before := is[Client](w.do("GET", "/v1/clients/a", nil), 200).Wants[0]
	if left := time.Until(before.Until); before.Lease != 1000 || left <= 0 || left > 1000*time.Second {
		t.Errorf("%+v", before)
	}
	if after := is[Client](w.do("POST", "/v1/clients/a/renew", nil), 200).Wants[0]; !after.Until.After(before.Until) {
		t.Errorf("%+v after %+v", after, before)
	}
	for _, wrong := range []string{request("a", false, `,"records":["fn1"],"lease":5`), request("a", true, `,"records":["fn1"],"lease":-1`)} {
		if p := is[Problem](w.do("POST", "/v1/updates", wrong), 400); p.Field != "lease" {
			t.Errorf("%+v", p)
		}
	}
	is[Problem](w.do("POST", "/v1/clients/a/renew", `{}`), 400)
}

// TestProblemTypes: programs tell problems apart by their types.
func TestProblemTypes(t *testing.T) {
	w := ready(t)
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"key":"k","records":["fn1"],"wait":true`)), 200)
	for _, tt := range []struct {
		got  reply
		code int
		kind string
	}{
		{w.do("POST", "/v1/updates", request("a", true, `,"key":"k","records":["fn2"]`)), 409, "key-reused"},
		{w.do("DELETE", "/v1/updates/1", nil), 409, "too-late"},
		{w.do("GET", "/v1/updates/99", nil), 404, "not-found"},
		{w.do("PUT", "/v1/clients/a/ops/o", `{}`, "If-Match", `"00"`), 412, "changed"},
	} {
		if p := is[Problem](tt.got, tt.code); p.Type != typePrefix+tt.kind {
			t.Errorf("%+v, want %s", p, tt.kind)
		}
	}
	if p := is[Problem](w.do("POST", "/v1/updates", `{}`), 400); p.Type != "about:blank" {
		t.Errorf("%+v", p)
	}
}

// TestProfiles: who has a full token sees the inside of the process, and without tokens nobody.
func TestProfiles(t *testing.T) {
	open := ready(t)
	is[Problem](open.do("GET", "/debug/pprof/heap", nil), 403)
	w := ready(t, func(_ *service.Config, c *Config) { c.Tokens = tokens(t, "full "+fullToken+"\nread "+readToken+"\n") })
	for token, code := range map[string]int{fullToken: 200, readToken: 403, "": 401} {
		w.token = token
		if r := w.do("GET", "/debug/pprof/goroutine?debug=1", nil); r.status != code {
			t.Errorf("%d: %.100s, want %d", r.status, r.body, code)
		}
	}
	w.token = fullToken
	p, want := is[Problem](w.do("GET", "/debug/pprof/nothing", nil), 404),
		`name: "nothing": want profile, trace, heap, goroutine or another of runtime/pprof`
	if p.Error() != want {
		t.Errorf("%s, want %s", p.Error(), want)
	}
	is[Problem](w.do("GET", "/debug/pprof/profile?seconds=100", nil), 400)
}

// TestClients: who wants something, in pages; and records that somebody wants.
func TestClients(t *testing.T) {
	w := ready(t)
	for _, client := range []string{"a", "b"} {
		is[Update](w.do("POST", "/v1/updates", request(client, true, `,"records":["fn1"],"wait":true`)), 200)
		is[Update](w.do("POST", "/v1/updates", request(client, true, `,"records":["fn2"],"ops":"o","wait":true`)), 200)
	}
	var got []string
	for path := "/v1/clients?limit=1"; ; {
		page := is[Clients](w.do("GET", path, nil), 200)
		for _, x := range page.Wants {
			got = append(got, x.Client+" "+x.Ops)
		}
		if page.Next == "" {
			break
		}
		path = "/v1/clients?limit=1&after=" + page.Next + "&after-ops=" + page.NextOps
	}
	if want := []string{"a function", "a o", "b function", "b o"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if page := is[Records](w.do("GET", "/v1/records?enabled=true", nil), 200); len(page.Records) != 2 || page.Records[1].Symbol != "fn2" {
		t.Errorf("%+v", page)
	}
}

// TestHeldOverHTTP: what does not fit is refused, or held until a time that the answer names.
func TestHeldOverHTTP(t *testing.T) {
	w := ready(t, func(s *service.Config, _ *Config) {
		s.Budget = []service.Limit{{Name: "ipis", Max: 3, Period: time.Hour}}
	})
	is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn1"],"wait":true`)), 200)
	if p := is[Problem](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn2"]`)), 409); p.Type != "urn:textpoke:problem:over-budget" ||
		!strings.Contains(p.Detail, "fits at") {
		t.Errorf("%+v", p)
	}
	if p := is[Problem](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn2"],"hold":1`)), 400); p.Field != "hold" {
		t.Errorf("%+v", p)
	}
	u := is[Update](w.do("POST", "/v1/updates", request("a", true, `,"records":["fn2"],"hold":true`)), 202)
	for end := time.Now().Add(10 * time.Second); u.State != "held" && time.Now().Before(end); {
		u = is[Update](w.do("GET", fmt.Sprintf("/v1/updates/%d", u.ID), nil), 200)
	}
	if u.State != "held" || u.Fits.Before(time.Now()) || u.Phase != "ipis=3/1h0m0s, of which it takes 3" {
		t.Errorf("%+v", u)
	}
	if page := is[Updates](w.do("GET", "/v1/updates?state=held", nil), 200); len(page.Updates) != 1 {
		t.Errorf("%+v", page)
	}
	is[Update](w.do("DELETE", fmt.Sprintf("/v1/updates/%d", u.ID), nil), 200)
}
