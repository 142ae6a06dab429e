// SPDX-License-Identifier: Apache-2.0

package api

import "testing"

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
