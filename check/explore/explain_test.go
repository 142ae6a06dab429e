// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/textpoke/textpoke/cpus"
)

// told is a way of three steps about one site and two CPUs, of which the first makes none: it has no column, and
// nobody asks what it may fetch.
func told() *Trace {
	site := func(bytes, literal string, second ...string) []Site {
		return []Site{{Bytes: bytes, Literal: literal, Fetch: [][]string{{"x", "y"}, second}}}
	}
	both := []string{"boundary", "boundary"}
	return &Trace{
		Model: []string{"--arch", "arm64"},
		Steps: []Step{
			{Do: "b0", Who: "patcher 0", What: "begins", CPUs: both, Sites: site("aa", "nop_ops", "aa")},
			{Do: "p0", Who: "patcher 0", What: "stores", CPUs: both, Sites: site("bb", "nop_ops", "bb", "aa")},
			{Do: "c1", Who: "cpu 1", What: "fetches", CPUs: both, Sites: site("bb", "ops 0", "bb")},
		},
		Violation: cpus.Violation{Property: cpus.TornFetch, CPU: 1, Site: 0, Addr: 0x40, Bytes: "ba", Why: "it mixes"},
	}
}

const verdictOfTold = "torn-fetch: CPU 1, site 0 at 0x40, bytes ba: it mixes\n"

// TestExplainedTable: who steps has a column, patchers first; a site shows what is there; what may be fetched is told
// when it changes.
func TestExplainedTable(t *testing.T) {
	table, rest, _ := strings.Cut(told().ExplainIn(0), "┘\n")
	var got [][]string
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSpace(line), "│"); len(cells) > 1 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			got = append(got, cells[1:len(cells)-1])
		}
	}
	want := [][]string{
		{"step", "patcher 0", "cpu 1", "site 0", "may be fetched"},
		{"1", "begins", "", "aa (nop_ops)", ""},
		{"2", "stores", "", "bb (nop_ops)", "cpu 1, site 0: bb <- aa"},
		{"3", "", "fetches", "bb (ops 0)", "cpu 1, site 0: bb"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if want := verdictOfTold + "There may be a shorter way: the search has not gone through all of them.\n"; rest != want {
		t.Errorf("%q\nwant %q", rest, want)
	}
	if got := (&Trace{}).ExplainIn(0); got != "" {
		t.Errorf("no step is told as %q", got)
	}
}

// TestExplainedLines: on a screen that is too narrow for the table the steps are lines, and below each stands what it
// changes; a table that just fits is one.
func TestExplainedLines(t *testing.T) {
	way := told()
	way.Shortest, way.Violation.Bytes = true, ""
	want := `  1. patcher 0: begins
     | site 0: aa (nop_ops)
  2. patcher 0: stores
     | site 0: bb (nop_ops)
     | cpu 1, site 0: bb <- aa
  3. cpu 1: fetches
     | site 0: bb (ops 0)
     | cpu 1, site 0: bb
torn-fetch: CPU 1: it mixes
`
	first, _, _ := strings.Cut(way.ExplainIn(0), "\n")
	width := utf8.RuneCountInString(first)
	if got := way.ExplainIn(width - 1); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := way.ExplainIn(width); got != way.ExplainIn(0) {
		t.Errorf("%d characters wide:\n%s", width, got)
	}
	way.Steps[0].Sites[0].Fetch[1] = []string{"aa", "zz"} // from the start
	if got := way.ExplainIn(40); !strings.Contains(got, "aa (nop_ops)\n     | cpu 1, site 0: aa <- zz\n") {
		t.Error(got)
	}
}

// TestSavedTraces: what is saved is read again; what is no trace is refused with the file and the mistake.
func TestSavedTraces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	way := told()
	if err := way.Save(path); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadTrace(path); err != nil || !reflect.DeepEqual(got, way) {
		t.Errorf("%+v, %v, want %+v", got, err, way)
	}
	for text, want := range map[string]string{
		`{"format":1,`:                        "byte 12: unexpected end of JSON input",
		`{"format":2,"model":["x"]}`:          "format 2: want 1",
		`{"format":1}`:                        `no "model": it says what the steps are of`,
		`{"format":1,"model":["x"],"steps":7`: "byte 35: unexpected end of JSON input",
		`{"format":1,"model":["x"],"steps":[{"do":"c1"},{"do":"c"}]}`: `step 2: "c": not an action such as c1:0,2`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadTrace(path); err == nil || err.Error() != "trace "+path+": "+want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := LoadTrace(path + ".not"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "trace: ") {
		t.Errorf("%v", err)
	}
	missing := filepath.Join(path, "below")
	if err := way.Save(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
}

// TestSpelledActions: an action is spelled and read again, and what nobody spells is refused.
func TestSpelledActions(t *testing.T) {
	for _, text := range []string{"c1", "c0:0", "p2:1,0,3", "b0", "d0.1", "u1.0", "k7", "s1", "a1", "n255", "t1",
		"d0.0:4"} {
		a, answers, err := parseAction(text)
		if err != nil || a.spell(answers) != text {
			t.Errorf("%s is %s, %v", text, a.spell(answers), err)
		}
		if patcher := strings.ContainsRune("pbd", rune(text[0])); a.byPatcher() != patcher {
			t.Errorf("%s is a patcher's: %v", text, a.byPatcher())
		}
		if got, want := a.actor(), int(a.who); got != want && got != want+MaxCPUs || (got == want) == a.byPatcher() {
			t.Errorf("%s is done by %d", text, got)
		}
	}
	for _, text := range []string{"", "x1", "c", "c256", "c01", "c1:", "c1:a", "c1:1,", "c1.0", "d0", "d0.",
		"u1", "c+1", "c1:256"} {
		if _, _, err := parseAction(text); err == nil {
			t.Errorf("%q is an action", text)
		}
	}
}

// TestOtherEnginesDiverge: an engine that comes to something else than the trace is told apart at the first step that
// differs, and so is the checker's own semantics.
func TestOtherEnginesDiverge(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "drop-sync-1", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	way := explore(t, s, Options{Workers: 1}).Trace
	at := slices.IndexFunc(way.Steps, func(s Step) bool { return s.Who == "cpu 1" })
	do := way.Steps[at].Do
	for _, tt := range []struct {
		wrap func(liveStepped) Stepped
		what string
	}{
		{func(l liveStepped) Stepped { return l }, ""},
		{func(l liveStepped) Stepped { return otherEvent{l} }, "event"},
		{func(l liveStepped) Stepped { return otherState{l} }, "state"},
	} {
		l, err := m.live(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ReplayOn(m, way, tt.wrap(liveStepped{l, l.Lockstep()}))
		var diverged *DivergedError
		if errors.As(err, &diverged) != (tt.what != "") || diverged != nil && (diverged.What != tt.what ||
			diverged.Step != at+1 || diverged.Do != do) {
			t.Errorf("%q: %v", tt.what, err)
		}
	}
	for what, change := range map[string]func(*Step){
		"event": func(s *Step) { s.Event = "other" }, "state": func(s *Step) { s.After = "other" },
		"the chooser was asked something else": func(s *Step) { s.Do += ":9" },
		"no CPU or patcher has that number":    func(s *Step) { s.Do = "c2" },
		"this cannot happen now":               func(s *Step) { s.Do = "u1.0" },
	} {
		damaged := *way
		damaged.Steps = slices.Clone(way.Steps)
		change(&damaged.Steps[at])
		n, err := Conform(m, &damaged)
		var diverged *DivergedError
		if n != at || !errors.As(err, &diverged) || diverged.What != what || (diverged.Want == "other") != (len(what) == 5) {
			t.Errorf("%s: %d steps, %v", what, n, err)
		}
	}
	silent := *way
	silent.Steps = slices.Clone(way.Steps)
	silent.Steps[at].After = "" // as recordings of patchers are
	if n, err := Conform(m, &silent); n != len(way.Steps) || err != nil {
		t.Errorf("%d steps, %v", n, err)
	}
}

// otherEvent is a machine whose CPUs come to something else.
type otherEvent struct{ liveStepped }

func (o otherEvent) Step(cpu int, ch cpus.Chooser) cpus.Event {
	o.liveStepped.Step(cpu, ch)
	return cpus.Lost
}

// otherState is a machine whose second CPU is always somewhere else.
type otherState struct{ liveStepped }

func (o otherState) CPU(cpu int) cpus.CPU {
	c := o.liveStepped.CPU(cpu)
	if cpu == 1 {
		c.Phase = cpus.Trapped
	}
	return c
}
