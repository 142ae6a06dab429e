// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/cpus"
)

// asked is a question of the museum.
func asked(t *testing.T, name string, fixed bool) *Question {
	t.Helper()
	list, err := BugQuestions([]string{name}, fixed)
	if err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	return list[0]
}

// TestAnswers: each verdict is said in a line, and of several how many there are of each.
func TestAnswers(t *testing.T) {
	q := asked(t, "try-get-desc", false)
	row := func(v explore.Verdict) VerdictRow {
		r := VerdictRow{Question: q, Result: &explore.Result{Verdict: v, States: 7, Depth: 3, Cut: "the limit is reached"}, Swarm: 2}
		if v == explore.Unsafe {
			r.Violation, r.Depth = &cpus.Violation{Property: cpus.TornFetch}, 1
		}
		return r
	}
	var all []VerdictRow
	for _, c := range []struct {
		verdict     explore.Verdict
		answer, cut string
	}{
		{explore.Unsafe, "UNSAFE: torn-fetch in 1 step", ""},
		{explore.Safe, "SAFE for ", ""},
		{explore.NotFound, "NOT FOUND: 2 searches of 7 states in all have met nothing, which proves nothing",
			"2 searches went as deep as 3 steps and met nothing: that proves nothing: textpoke check --bug try-get-desc"},
		{explore.Incomplete, "INCOMPLETE: nothing breaks in the first 7 states; the limit is reached",
			"nothing is known beyond 2 steps and 7 states: the limit is reached: textpoke check --bug try-get-desc"},
	} {
		r := row(c.verdict)
		if got := r.Answer(); !strings.HasPrefix(got, c.answer) {
			t.Errorf("%s: %s, want %s", c.verdict, got, c.answer)
		}
		if got := r.CutShort(); c.cut != "" && got != c.cut {
			t.Errorf("%s: %s, want %s", c.verdict, got, c.cut)
		}
		if r.Safe() != (c.verdict == explore.Safe) {
			t.Errorf("%s is safe: %v", c.verdict, r.Safe())
		}
		cells, err := Columns.Row(&r)
		if err != nil {
			t.Fatal(err)
		}
		complete := c.verdict == explore.Safe // an unsafe one of a swarm is not the shortest
		for i, column := range Columns.Table("rows").Columns {
			if column.Name == "complete" && cells[i].String() != map[bool]string{true: "true", false: "false"}[complete] {
				t.Errorf("%s: complete is %s", c.verdict, cells[i])
			}
		}
		all = append(all, r)
	}
	all = append(all, row(explore.Safe))
	if got, want := Answers(all), "1 UNSAFE, 2 SAFE, 1 NOT FOUND, 1 INCOMPLETE of 5 questions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := Answers(all[:1]), "1 UNSAFE of 1 question"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestMachineInWords: roles are said where not all CPUs are busy.
func TestMachineInWords(t *testing.T) {
	for want, roles := range map[string][]cpus.Role{"1 CPU": {cpus.Busy}, "2 CPUs": {cpus.Busy, cpus.Busy},
		"2 CPUs (busy=1,isolated=1)": {cpus.Busy, cpus.Isolated}} {
		if got := machineOf(roles); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestStory: a scenario is told with its source and its fix, in lines that fit.
func TestStory(t *testing.T) {
	q := asked(t, "try-get-desc", false)
	for _, width := range []int{0, 60} {
		text := q.Story(width)
		for i, want := range []string{q.about.Title + " (" + q.about.Versions, "Source: " + q.about.Source, q.about.Story,
			"Fix: " + q.about.Fix} {
			first := strings.Join(strings.Fields(want)[:3], " ")
			if at := strings.Index(text, first); at < 0 || i == 0 && at > 0 {
				t.Errorf("%d: %q stands at %d of\n%s", width, first, at, text)
			}
		}
		for line := range strings.Lines(text) {
			if n := len(strings.TrimSuffix(line, "\n")); width > 0 && n > width || n > storyWidth || strings.HasSuffix(line, " \n") {
				t.Errorf("%d: %q is too long, or ends with a space", width, line)
			}
		}
	}
	if got := (&Question{}).Story(0); got != "" {
		t.Errorf("no scenario: %q", got)
	}
}

// TestFlagsOfBugs: a scenario is asked by its name, and its mended form by one word more.
func TestFlagsOfBugs(t *testing.T) {
	for want, fixed := range map[string]bool{"textpoke check --bug try-get-desc": false,
		"textpoke check --bug try-get-desc --fixed": true} {
		if got := asked(t, "try-get-desc", fixed).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestNoBug: a name that is near one is told which; others are told how many there are; omitted ones are told why.
func TestNoBug(t *testing.T) {
	for name, want := range map[string]string{
		"try-get-desk": `bug "try-get-desk": not one of `, "zzzzzzzzzzzzzzzzzzzzzzzz": "scenarios: textpoke check list names them",
	} {
		_, err := BugQuestions([]string{name}, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if near := strings.Contains(err.Error(), "did you mean try-get-desc?"); near != (name == "try-get-desk") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLitmusAnswer: outcomes are counted, whatever is expected of them.
func TestLitmusAnswer(t *testing.T) {
	rows := []*litmus.Row{{Verdict: litmus.Allowed}, {Verdict: litmus.Forbidden}, {Verdict: litmus.Allowed}}
	if got, want := LitmusAnswer(rows, []string{"one"}), "ANSWER: 2 of 3 outcomes are allowed; 1 are not as expected"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestList: everything that can be checked is there once, with its kind.
func TestList(t *testing.T) {
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, row := range list.Rows {
		seen[row[0].String()+" "+row[1].String()]++
	}
	for _, want := range []string{"protocol native", "protocol breakpoint", "mutation drop-sync-2", "litmus 2SM.B+cachesync-isb"} {
		if seen[want] != 1 {
			t.Errorf("%s is there %d times", want, seen[want])
		}
	}
	if got, want := len(BugNames()), 20; got < want {
		t.Errorf("%d scenarios, want %d at least", got, want)
	}
}
