// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service/journal"
)

// TestAnswers: answers about clients, wants, plans and costs, whole, one step after the other; times and tags are
// left out.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start(t)
	var out bytes.Buffer
	until := regexp.MustCompile(`"until":"[^"]*"`)
	show := func(what string, values ...any) {
		fmt.Fprintf(&out, "%s:", what)
		for _, v := range values {
			if err, ok := v.(error); ok {
				fmt.Fprintf(&out, " %v", err)
				continue
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, " %s", until.ReplaceAll(b, []byte(`"until":"T"`)))
		}
		fmt.Fprintln(&out)
	}
	look := func(step string) {
		fmt.Fprintf(&out, "== %s\n", step)
		for _, name := range []string{"fn1", "fn2", w.Sim.Table.Addr(2).String(), "0x1", "nobody"} {
			records, who, err := s.WantedBy(name)
			show("wanted "+name, records, who, err)
		}
		for _, client := range []string{"a", "b", "none"} {
			wants, open := s.Client(client)
			show("client "+client, wants, open)
			found, tag := s.Ops(client, "tracer")
			show("ops of "+client, found, tag != "")
		}
		show("clients", s.Clients("", "", 10))
		show("clients behind a", s.Clients("a", "tracer", 1))
		rows, err := s.Compare(t.Context(), []sched.Buffer{{Slots: 1}, {Slots: 256}})
		for _, row := range rows {
			show("cost", row.Patches, row.Flushes, row.Rounds, row.IPIs, row.IPIsPerCPU)
		}
		show("compared", err)
		for _, r := range []Request{enable("a", "fn1", "fn7"), disable("a", "fn1", "fn2"), enable("b", "fn2"), disable("b",
			"fn2"),
			{Client: "a", Ops: "tracer", Enable: true, Set: true, Records: []string{"fn2"}},
			{Client: "c", Ops: "other", Enable: true, Filter: []string{"fn1*"}}} {
			p, err := s.Plan(t.Context(), r)
			show(fmt.Sprint("plan of ", r.Client, r.Ops, r.Enable, r.Set, r.Records, r.Filter), p, err)
		}
		list, err := s.Records(t.Context(), RecordQuery{After: -1, Enabled: true})
		show("enabled", list, err)
	}
	look("nothing")
	do(t, s, enable("a", "fn1", "fn2"))
	look("a wants fn1 and fn2")
	do(t, s, enable("b", "fn2"))
	do(t, s, Request{Client: "a", Ops: "other", Enable: true, Records: []string{"fn30", "fn60"}, Lease: 3600})
	look("b wants fn2, and a two with another ops, for an hour")
	do(t, s, disable("a", "fn1", "fn2"))
	look("a wants none with the first")
	for _, n := range []int{-1, 3} {
		show("plug", s.Plug(t.Context(), n, true))
	}
	for _, in := range []bool{true, false, false, true} {
		show("plug", s.Plug(t.Context(), 1, in))
		for _, c := range s.live.CPUs() {
			fmt.Fprint(&out, " ", c.ID, c.Role, c.Online)
		}
	}
	show("\ndamage", s.Damage())
	show("kinds", EventKinds())
	show("trace", s.Trace(t.Context(), "a", "", nil))
	_, err := s.Cancel(t.Context(), 1)
	show("cancel", err)
	_, err = s.Cancel(t.Context(), 99)
	show("cancel", err)
	_, err = s.Wait(t.Context(), 99)
	show("wait", err)
	all, err := s.Updates(t.Context(), Query{Client: "a", Newest: true, Limit: 2})
	for _, u := range all {
		show("update", u.ID, u.Client, u.State, u.Records)
	}
	show("updates", err)
	for _, state := range []State{journal.Queued, journal.Held, journal.Running} {
		list, err := s.Updates(t.Context(), Query{State: state})
		show("on their way", list, err)
	}
	golden.Check(t, filepath.Join("testdata", "answers.txt"), out.Bytes())
}

// TestRefusedWhole: each refusal of a request, whole, at its border.
func TestRefusedWhole(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start(t)
	long := strings.Repeat("x", maxName)
	for i, c := range []struct {
		change func(r *Request)
		want   string
	}{
		{func(r *Request) { r.Client, r.Key, r.Ops = long, long, long }, "<nil>"},
		{func(r *Request) { r.Client = "" }, "client: is missing"},
		{func(r *Request) { r.Ops = "" }, "ops: is missing"},
		{func(r *Request) { r.Client = long + "x" }, "client: has 129 bytes, at most 128 are allowed"},
		{func(r *Request) { r.Key = long + "x" }, "key: has 129 bytes, at most 128 are allowed"},
		{func(r *Request) { r.Ops = long + "x" }, "ops: has 129 bytes, at most 128 are allowed"},
		{func(r *Request) { r.Client = "a\x00b" }, `client: "a\x00b": not all of it is printable UTF-8`},
		{func(r *Request) { r.Key = "\xff" }, `key: "\xff": not all of it is printable UTF-8`},
		{func(r *Request) { r.Lease = -1 }, "lease: -1 seconds, want 1 to 31622400"},
		{func(r *Request) { r.Lease = 366*24*3600 + 1 }, "lease: 31622401 seconds, want 1 to 31622400"},
		{func(r *Request) { r.Lease = 366 * 24 * 3600 }, "<nil>"},
		{func(r *Request) { r.Lease, r.Enable = 1, false }, "lease: goes with enable alone"},
		{func(r *Request) { r.Filter = []string{"x"} }, "records: goes without filter"},
		{func(r *Request) { r.Records = nil }, "records: is missing, and so is filter"},
		{func(r *Request) { r.Records, r.Set = nil, true }, "<nil>"},
		{func(r *Request) { r.Records = make([]string, 100_000) }, "<nil>"},
		{func(r *Request) { r.Records = make([]string, 100_001) }, "records: more than 100000"},
	} {
		r := enable("a", "fn1")
		c.change(&r)
		got := "<nil>"
		if err := s.check(&r); err != nil {
			f := err.(*FieldError)
			got = f.Field + ": " + f.Reason
			if f.Error() == "" {
				t.Error("a field's error says nothing")
			}
		}
		if got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	s.cfg.Ops = []string{"function", "graph"}
	r := enable("a", "fn1")
	if err := s.check(&r); err == nil || !strings.HasSuffix(err.Error(), `"tracer": this machine has function, graph`) {
		t.Error(err)
	}
	if err := s.Trace(t.Context(), "a", "kprobe", nil); err == nil || !strings.HasSuffix(err.Error(),
		"this machine has function, graph") {
		t.Error(err)
	}
	if got := fmt.Sprint(s.numbers("function", []int{3, 5}), s.numbers("graph", []int{3, 5}),
		s.layers()); got != "[3 5] [103 105] 2" {
		t.Error(got)
	}
	for number, want := range map[int][2]int{0: {0, 0}, 99: {0, 99}, 100: {1, 0}, 205: {2, 5}} {
		if ops, record := Split(100, number); ops != want[0] || record != want[1] || Number(100, ops, record) != number {
			t.Errorf("%d: %d, %d", number, ops, record)
		}
	}
	s.cfg.Ops = nil
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	held := &HeldError{at, "why"}
	if want := ErrBudget.Error() + ": why: it fits at 2026-01-02T03:04:05.000000006Z"; held.Error() != want ||
		!errors.Is(held, ErrBudget) {
		t.Errorf("%v, want %s", held, want)
	}
}

// TestMine: lines are a client's by what it wants, as lines name it, and lost events are everybody's.
func TestMine(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start(t)
	do(t, s, Request{Client: "a", Ops: "function", Enable: true, Records: []string{"fn1"}})
	do(t, s, Request{Client: "a", Ops: "graph", Enable: true, Records: []string{"fn2"}})
	do(t, s, Request{Client: "b", Ops: "function", Enable: true, Records: []string{"fn3"}})
	name := func(n int) string {
		return tracefs.Function{Name: w.Sim.Table.Symbol(n), Module: w.Sim.Table.Module(n)}.String()
	}
	both, one := &mine{service: s, client: "a", as: -1}, &mine{service: s, client: "a", ops: "graph", as: -1}
	for i, c := range []struct {
		l         Line
		both, one bool
	}{
		{Line{Kind: "function", Name: name(1)}, true, false}, {Line{Kind: "graph", Name: name(2)}, true, true},
		{Line{Kind: "graph", Name: name(1)}, false, false}, {Line{Kind: "function", Name: name(3)}, false, false},
		{Line{Lost: 3}, true, true}, {Line{Text: "x"}, false, false},
	} {
		if both.keep(&c.l) != c.both || one.keep(&c.l) != c.one {
			t.Errorf("%d: %v, %v", i, both.keep(&c.l), one.keep(&c.l))
		}
	}
	do(t, s, Request{Client: "a", Ops: "function", Enable: true, Records: []string{"fn3"}})
	if !both.keep(&Line{Kind: "function", Name: name(3)}) {
		t.Error("what is wanted since is left out")
	}
}
