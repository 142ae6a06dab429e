// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

// ends is an experiment that adds rows up to a number and then ends in a way that its test chooses.
func ends(rows int, answer *experiments.Answer, err error) *experiments.Experiment {
	return &experiments.Experiment{Name: "ends", Table: endless.Table, New: func() *experiments.Request {
		return &experiments.Request{Run: func(_ context.Context, l experiments.Lab) (*experiments.Answer, error) {
			for n := range rows {
				if err := l.Add(n); err != nil {
					return nil, err
				}
			}
			if l.Seed == 1 {
				return nil, l.Add("a", "b")
			}
			return answer, err
		}}
	}}
}

// TestReports: what a child says of a run: each row, and at the end the outcome and its files.
func TestReports(t *testing.T) {
	document := func(name, text string, err error) results.Document {
		return results.Document{Name: name, Write: func(w io.Writer) error { _, _ = io.WriteString(w, text); return err }}
	}
	broken := errors.New("broken")
	const plain, csv = `summary.json application/json {"seed":7`, "endless.csv text/csv; charset=utf-8 n\n0\n1\n"
	for i, c := range []struct {
		rows   int
		seed   uint64
		answer *experiments.Answer
		err    error
		want   string
	}{
		{0, 7, nil, nil, "over " + plain + "}\n"},
		{2, 7, nil, nil, "1 2 over " + plain + `,"rows":2}` + "\n" + csv},
		{2, 7, &experiments.Answer{Headline: "yes", No: errors.New("not so"),
			Documents: []results.Document{document("a.svg", "s", nil), document("b.bin", "b", nil)}}, nil,
			"1 2 over " + plain + `,"rows":2,"answer":"yes","no":"not so"}` + "\n" + csv +
				"a.svg image/svg+xml sb.bin application/octet-stream b"},
		{0, 7, &experiments.Answer{Headline: "yes"}, broken, "over broken " + plain + `,"answer":"yes"}` + "\n"},
		{0, 7, nil, fmt.Errorf("x: %w", context.Canceled), "over x: context canceled, cancelled " + plain + "}\n"},
		{0, 7, &experiments.Answer{Documents: []results.Document{document("a.md", "", broken), document("b.md", "", nil)}},
			nil, "over a.md: broken " + plain + "}\n"},
		{1, 1, nil, nil, "1 over results: row does not fit its columns: 2 cells for 1 columns " + strings.Replace(plain, "7",
			"1", 1) +
			`,"rows":1}` + "\nendless.csv text/csv; charset=utf-8 n\n0\n"},
	} {
		var out bytes.Buffer
		send := gob.NewEncoder(&out)
		e := childRequest{Question{Request: choice.Request{Name: "ends"}, Seed: c.seed}, "r"}
		last := e.run(t.Context(), []*experiments.Experiment{endless, ends(c.rows, c.answer, c.err)}, zap.NewNop(), send)
		got := ""
		for receive := gob.NewDecoder(&out); ; {
			var r report
			if receive.Decode(&r) != nil {
				break
			}
			got += fmt.Sprint(r.Rows, " ")
		}
		if got += "over "; last.Error != "" {
			got += last.Error + map[bool]string{true: ", cancelled "}[last.Cancelled]
			got = strings.TrimSuffix(got, " ") + " "
		}
		for _, f := range last.Files {
			got += f.Name + " " + f.Type + " " + string(f.Data)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || !last.Over || last.Summary.Rows != c.rows {
			t.Errorf("%d: %s", i, diff)
		}
	}
	e := childRequest{Question: Question{Request: choice.Request{Name: "none"}}}
	if r := e.run(t.Context(), nil, nil, nil); !r.Over || r.Error != `no such experiment: "none"` {
		t.Errorf("%+v", r)
	}
}

// TestFirstWords: of what a child says, its panic comes first, and no more is kept than a field may have.
func TestFirstWords(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\nb": "a", "a\npanic: b\nc": "panic: b"} {
		if got := (&firstWords{[]byte(text)}).line(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var f firstWords
	f.text = make([]byte, maxText-1)
	for range 2 {
		if n, err := f.Write([]byte("\n\n")); n != 2 || err != nil || len(f.text) != maxText {
			t.Errorf("%d, %v: %d bytes", n, err, len(f.text))
		}
	}
}

// TestQueries: runs by their number, name and state, in both directions.
func TestQueries(t *testing.T) {
	st := open(t)
	for i := range 5 {
		r, err := st.AddRun(fmt.Sprintf("e%d", i%2), "", time.Now())
		if err == nil && i < 4 {
			state := []journal.State{journal.Done, journal.Live, journal.Failed, journal.Cancelled}[i]
			err = st.EndRun(r.ID, state, "", time.Now(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l := &Lab{cfg: Config{Store: st}}
	for i, c := range []struct {
		q    Query
		want string
	}{
		{Query{Limit: 9}, "1done 2done 3failed 4cancelled 5queued "},
		{Query{Limit: 2}, "1done 2done "}, {Query{}, ""},
		{Query{Limit: 2, Newest: true}, "5queued 4cancelled "},
		{Query{Limit: 9, After: 2}, "3failed 4cancelled 5queued "},
		{Query{Limit: 9, Before: 3}, "1done 2done "}, {Query{Limit: 9, Before: 5, After: 3}, "4cancelled "},
		{Query{Limit: 9, Name: "e1"}, "2done 4cancelled "}, {Query{Limit: 9, State: journal.Done}, "1done 2done "},
		{Query{Limit: 9, State: journal.Done, Name: "e0"}, "1done "},
	} {
		got := ""
		for _, r := range l.Results(c.q) {
			got += fmt.Sprint(r.ID, r.State, " ")
		}
		if got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	if _, err := l.Result(t.Context(), 6); !errors.Is(err, journal.ErrNotFound) {
		t.Error(err)
	}
	if states := fmt.Sprint(States()); states != "[queued running done failed cancelled]" {
		t.Error(states)
	}
}

// TestBadSummary: a summary that cannot be read is an error of its run.
func TestBadSummary(t *testing.T) {
	st := open(t)
	r, err := st.AddRun("e", "", time.Now())
	if err == nil {
		err = st.EndRun(r.ID, journal.Done, "", time.Now(), []journal.File{
			{Name: "a", Data: []byte("{")}, {Name: summaryName, Data: []byte("{")}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Lab{cfg: Config{Store: st}}).Result(t.Context(), r.ID); err == nil ||
		err.Error() != "summary.json of run 1: unexpected end of JSON input" {
		t.Error(err)
	}
}

// TestPlaces: as many wait as the queue has places, those that are being written down among them.
func TestPlaces(t *testing.T) {
	st := open(t)
	l := &Lab{cfg: Config{Store: st, Queue: 3, Experiments: []*experiments.Experiment{endless}}, ctx: t.Context(),
		wake: make(chan struct{}, 1), active: map[int64]*run{}, coming: 1}
	q := Question{Request: choice.Request{Name: "endless"}}
	for i, want := range []error{nil, nil, ErrFull} {
		r, err := l.Submit(q)
		if !errors.Is(err, want) || err == nil && (r.ID != int64(i+1) || r.State != journal.Queued || r.Submitted.IsZero()) {
			t.Errorf("%d: %+v, %v, want %v", i, r, err, want)
		}
	}
	if l.coming != 1 || len(l.queue) != 2 || len(l.active) != 2 {
		t.Errorf("%d are written, %d wait", l.coming, len(l.queue))
	}
	l.coming = 0
	full := errors.New("no room")
	st.Fault(func() error { return full })
	if _, err := l.Submit(q); !errors.Is(err, full) || l.coming != 0 || len(l.queue) != 2 {
		t.Errorf("%v, %d are written, %d wait", err, l.coming, len(l.queue))
	}
	st.Fault(func() error { l.closed = true; return nil })
	if r, err := l.Submit(q); err != nil || r.State != journal.Queued || r.ID != 3 || len(l.queue) != 2 || l.coming != 0 {
		t.Errorf("closed meanwhile: %+v, %v", r, err)
	}
	for _, c := range []struct {
		q    Question
		want string
	}{
		{q, "no more experiments are started"}, {Question{}, `no such experiment: ""`},
		{Question{Request: choice.Request{Name: strings.Repeat("x", 99)}},
			`no such experiment: "` + strings.Repeat("x", 40) + `"`},
	} {
		if _, err := l.Submit(c.q); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if l.Cancel(7) {
		t.Error("a run that there is not was cancelled")
	}
}

// TestStartFails: a lab whose queue cannot be read, or kept, does not start.
func TestStartFails(t *testing.T) {
	full := errors.New("no room")
	for _, running := range []bool{true, false} {
		st := open(t)
		r, err := st.AddRun("gone", `{"Name":"gone"}`, time.Now())
		if err == nil && running {
			err = st.BeginRun(r.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		st.Fault(func() error { return full })
		if l, err := Start(t.Context(), Config{Store: st, Log: zap.NewNop()}); l != nil || !errors.Is(err, full) {
			t.Errorf("%v, %v", l, err)
		}
		st.Fault(func() error { return nil })
	}
}

// TestBounds: as much as may be, and one more.
func TestBounds(t *testing.T) {
	for i, c := range []struct {
		key   string
		texts []string
		want  string
	}{
		{"some_numbers", []string{strings.Repeat("1,", 63) + "1"}, "<nil>"},
		{"some_numbers", []string{strings.Repeat("1,", 64) + "1"}, "config.some_numbers: want 64 values at most"},
		{"some_numbers", strings.Split(strings.Repeat("1,", 63)+"1", ","), "<nil>"},
		{"some_numbers", []string{strings.Repeat("0", 4095) + "1"}, "<nil>"},
		{"some_numbers", []string{strings.Repeat("0", 4096) + "1"},
			"config.some_numbers: 4097 characters: want 4096 at most"},
		{"some_numbers", []string{"1000000"}, "<nil>"},
		{"some_numbers", []string{"1000001"}, `config.some_numbers: "1000001": want 1000000 at most`},
		{"records", []string{"gen:n=1000000,groups=2"}, "<nil>"},
		{"records", []string{"gen:n=1000001,groups=2"}, `config.records: "gen:n=1000001": want 1000000 at most`},
		{"records", []string{"gen:groups=2,n=1e7"}, `config.records: "n=1e7": want 1000000 at most`},
		{"published", []string{"x"}, "config.published: a file of the server cannot be named"},
		{"publishes", []string{"x"}, "config.publishes: the experiment has no such field; did you mean published?"},
	} {
		if _, err := configure(endless.New(), choice.Choices{c.key: c.texts}); fmt.Sprint(err) != c.want {
			t.Errorf("%d: %v, want %s", i, err, c.want)
		}
	}
	wrong := &ConfigError{"f", io.EOF}
	if !errors.Is(wrong, io.EOF) {
		t.Error("the value's error is not in it")
	}
}
