// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestExperiments starts some, follows them, and fetches what they leave.
func TestExperiments(t *testing.T) {
	w := ready(t)
	all := is[Experiments](w.do("GET", "/v1/experiments", nil), 200)
	if len(all.Experiments) != 4 || len(all.Experiments[0].Fields) != 1 ||
		all.Experiments[0].Fields[0].Name != "some_numbers" {
		t.Errorf("%+v", all)
	}
	start := w.do("POST", "/v1/experiments", Start{Name: "answer", Seed: 7,
		Config: map[string]Value{"some_numbers": {"3", "4"}}})
	at := start.header.Get("Location")
	if r := is[Result](start, 202); at != fmt.Sprintf("/v1/results/%d", r.ID) {
		t.Errorf("Location %s of %+v", at, r)
	}
	r := is[Result](w.do("GET", at+"?wait=true", nil), 200)
	if r.State != "done" || r.Rows != 1 || r.Seed != 7 || r.Config["some_numbers"] != "3,4" || r.Answer != "it is so" ||
		r.No != "but not quite" || len(r.Files) != 3 {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]string{"answer.csv": "n\n7\n", "answer.svg": "<svg/>"} {
		f := w.do("GET", at+"/files/"+name, nil)
		if f.status != 200 || f.body != want || !strings.HasPrefix(f.header.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(f.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	is[Problem](w.do("GET", at+"/files/nothing", nil), 404)
	is[Problem](w.do("DELETE", at, nil), 409)
	for _, c := range []struct{ name, want string }{
		{"fail", "no"}, {"panic", "its process ended: exit status 2: panic: ouch"},
	} {
		r := is[Result](w.do("POST", "/v1/experiments", Start{Name: c.name}), 202)
		r = is[Result](w.do("GET", fmt.Sprintf("/v1/results/%d?wait=true", r.ID), nil), 200)
		if r.State != "failed" || r.Error != c.want {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	page := is[Results](w.do("GET", "/v1/results?limit=2", nil), 200)
	if len(page.Results) != 2 || page.Next != 2 || page.Results[0].Name != "answer" {
		t.Errorf("%+v", page)
	}
	if page = is[Results](w.do("GET", "/v1/results?limit=3", nil), 200); len(page.Results) != 3 || page.Next != 0 {
		t.Errorf("%+v", page)
	}
	if page = is[Results](w.do("GET", "/v1/results?after=2", nil), 200); len(page.Results) != 1 || page.Next != 0 {
		t.Errorf("%+v", page)
	}
}

// TestExperimentsWait: one runs, two wait, the next is told to come back; those that
// wait and the one that runs can be cancelled.
func TestExperimentsWait(t *testing.T) {
	w := ready(t)
	var ids []int64
	start := func() reply { return w.do("POST", "/v1/experiments", Start{Name: "wait"}) }
	one := is[Result](start(), 202)
	for r := one; r.State != "running"; {
		r = is[Result](w.do("GET", "/v1/results/1", nil), 200)
	}
	ids = append(ids, is[Result](start(), 202).ID, is[Result](start(), 202).ID)
	full := start()
	is[Problem](full, 429)
	if full.header.Get("Retry-After") == "" {
		t.Errorf("%+v", full)
	}
	for _, id := range append(ids, one.ID) {
		if r := is[Result](w.do("DELETE", fmt.Sprintf("/v1/results/%d", id), nil), 200); r.State != "cancelled" {
			t.Errorf("%+v", r)
		}
	}
}

// TestChosenResults: newest first, by name and by state.
func TestChosenResults(t *testing.T) {
	w := ready(t)
	for _, name := range []string{"answer", "fail", "answer"} {
		r := is[Result](w.do("POST", "/v1/experiments", `{"name":"`+name+`"}`), 202)
		is[Result](w.do("GET", fmt.Sprintf("/v1/results/%d?wait=true", r.ID), nil), 200)
	}
	for query, want := range map[string][]int64{"newest=true&limit=2": {3, 2}, "newest=true&before=3": {2, 1},
		"name=answer":  {1, 3},
		"state=failed": {2}, "after=1&name=fail": {2}} {
		var got []int64
		for _, r := range is[Results](w.do("GET", "/v1/results?"+query, nil), 200).Results {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if p := is[Problem](w.do("GET", "/v1/results?state=x", nil), 400); p.Field != "state" {
		t.Errorf("%+v", p)
	}
}
