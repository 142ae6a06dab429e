// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// plainly is a text without its breaks of lines.
func plainly(text string) string { return strings.Join(strings.Fields(text), " ") }

// cellsOf are the cells of a row of verdicts by their columns.
func cellsOf(t *testing.T, r *VerdictRow) map[string]any {
	t.Helper()
	facts := map[string]any{}
	if err := Columns.AddTo(facts, r); err != nil {
		t.Fatal(err)
	}
	return facts
}

// TestCoveredIsTold: a safe verdict says what was looked at and what not, a question's own words begin it.
func TestCoveredIsTold(t *testing.T) {
	q := only(t, axis.Choices{"arch": {"arm64"}, "protocol": {"breakpoint"}, "mutate": {"no-fence"},
		"cpus":  {"busy=2,idle=1"},
		"sites": {"1"}, "fetch": {"coherent"}, "workload": {"once"}})
	r := VerdictRow{Question: q, Result: &explore.Result{Verdict: explore.Safe}}
	r.Coverage = explore.Coverage{Steps: 11, Traps: 12, Places: 13, Of: 14}
	head := "arm64 breakpoint no-fence, cpus busy=2,idle=1, sites 1, fetch coherent: "
	looked := "11 steps of CPUs, 12 traps; 13 of 14 places of plan and path were reached"
	rests := ""
	if on := q.Model.RestsOn(); on != "" {
		rests = "; rests on " + on
	}
	tail := "; promises: " + q.Model.Promises() + "; assumes: " + q.Model.Assumes()
	want := func(what string, middle string) {
		t.Helper()
		if got := plainly(r.RestsOn(0)); got != plainly(head+middle) {
			t.Errorf("%s:\n%s, want\n%s", what, got, head+middle)
		}
	}
	want("all", looked+rests+tail)
	r.Coverage.Never = []string{"one", "two"}
	want("some never", looked+"; never reached: one; two"+rests+tail)
	if got := cellsOf(t, &r)["never"]; got != "one; two" {
		t.Errorf("never %q", got)
	}
	r.Coverage.Never, r.Options.Liveness = nil, true
	want("liveness", looked+rests+"; every update can end and every CPU come back"+tail)
	r.Verdict = explore.NotFound
	want("not found", "not found; assumes: "+q.Model.Assumes())
	for _, width := range []int{0, 40, 200} {
		for line := range strings.Lines(r.RestsOn(width)) {
			if n := len(strings.TrimSpace(line)); n > 120 && width == 0 || n > width && width > 0 {
				t.Errorf("%d characters wide: %q", width, line)
			}
		}
	}
	q.Mutation = ""
	if got := plainly(r.RestsOn(0)); !strings.HasPrefix(got, "arm64 breakpoint, cpus") {
		t.Errorf("without a mutation: %s", got)
	}
	traps := only(t, axis.Choices{"arch": {"riscv64"}, "protocol": {"breakpoint"}})
	named := VerdictRow{Question: traps, Result: &explore.Result{Verdict: explore.Safe}}
	on := traps.Model.RestsOn()
	if got := plainly(named.RestsOn(0)); on == "" || !strings.Contains(got, "were reached; rests on "+on+"; promises") {
		t.Errorf("a protocol with traps: %s", got)
	}
	bug := VerdictRow{Question: asked(t, "try-get-desc", false), Result: &explore.Result{Verdict: explore.Unsafe}}
	got := plainly(bug.RestsOn(0))
	if !strings.HasPrefix(got, "try-get-desc, cpus ") || !strings.Contains(got, ": unsafe; assumes: ") {
		t.Errorf("a bug: %s", got)
	}
}

// TestCellsOfVerdicts: cells that no field of a row holds.
func TestCellsOfVerdicts(t *testing.T) {
	q := only(t, axis.Choices{"arch": {"x86_64"}, "cpus": {"3"}, "sites": {"1"}, "patchers": {"2"}, "contend": {"true"},
		"workload": {"once"}})
	r := VerdictRow{Question: q, Result: &explore.Result{Verdict: explore.Safe, States: 3000, Collision: 0.25}, Rate: true}
	for _, c := range []struct {
		change func()
		want   map[string]any
	}{
		{func() {}, map[string]any{"sites": int64(1), "cpus": "3", "patchers": int64(2), "complete": true,
			"collision": 0.25, "states_per_s": nil, "never": nil, "arch": "x86_64", "swarm": nil, "bug": nil}},
		{func() { r.Elapsed, r.Options.Exact = 2*time.Second, true }, map[string]any{"states_per_s": int64(1500),
			"collision": nil}},
		{func() { r.Rate = false }, map[string]any{"states_per_s": nil}},
		{func() { r.Verdict = explore.Incomplete }, map[string]any{"complete": false, "never": nil}},
		{func() { r.Verdict = explore.Unsafe }, map[string]any{"complete": true}},
		{func() { r.Swarm = 1 }, map[string]any{"complete": false, "swarm": uint64(1)}},
		{func() { r.Verdict = explore.NotFound }, map[string]any{"complete": false}},
	} {
		c.change()
		got := cellsOf(t, &r)
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%+v: %s is %v, want %v", *r.Result, name, got[name], want)
			}
		}
	}
}

// TestSafeAnswer: a safe verdict says for which machine, and how much there was to look at.
func TestSafeAnswer(t *testing.T) {
	q := only(t, axis.Choices{"arch": {"x86_64"}, "cpus": {"3"}, "sites": {"1"}})
	r := VerdictRow{Question: q, Result: &explore.Result{Verdict: explore.Safe, States: 9}}
	if got, want := r.Answer(), "SAFE for 3 CPUs, 1 site (9 states)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestStoryOfPaths: a protocol of somebody's own tells what CPUs do, where it says so; others tell nothing.
func TestStoryOfPaths(t *testing.T) {
	const steps = "name: p\nevery batch:\n    Write word\n"
	for text, told := range map[string]bool{steps: false, steps + "entry:\n    enter\n    catch up\n": true} {
		q := only(t, axis.Choices{"arch": {"x86_64"}, "plan": {planFile(t, text)}})
		want := ""
		if told {
			want = q.Model.Code.Path.String() + "\n"
		}
		if got := q.Story(0); got != want || told != strings.Contains(got, "entry: enter; catch up") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTracesSayTheirQuestion: what breaks is asked again by the words that its trace has; nothing else has a trace.
func TestTracesSayTheirQuestion(t *testing.T) {
	choices := axis.Choices{"arch": {"x86_64"}, "sites": {"1"}, "mutate": {"drop-sync-1"}}
	for _, mutation := range []string{"drop-sync-1", ""} {
		if choices["mutate"] = []string{mutation}; mutation == "" {
			delete(choices, "mutate")
		}
		q := only(t, choices)
		row, err := q.Ask(t.Context(), explore.Options{Workers: 1})
		if err != nil || row.Question != q || row.Options.Workers != 1 {
			t.Fatal(row, err)
		}
		if mutation == "" {
			if row.Trace != nil {
				t.Error("a safe question has a trace")
			}
			continue
		}
		if !slices.Equal(row.Trace.Model, q.Flags()) || len(q.Flags()) == 0 {
			t.Errorf("%q, want %q", row.Trace.Model, q.Flags())
		}
		found, err := q.Roam(t.Context(), explore.Member{Number: 1, States: 100_000})
		if err != nil || found.Trace == nil || !slices.Equal(found.Trace.Model, q.Flags()) {
			t.Errorf("a member of a swarm: %+v, %v", found, err)
		}
		if got := q.String(); got != Command(q.Flags()) || !strings.HasPrefix(got, "textpoke check --") {
			t.Errorf("%q", got)
		}
	}
}

// TestSearchFields: the choices of a search, their presets and borders, and what comes of them.
func TestSearchFields(t *testing.T) {
	var s Search
	fields := s.Fields()
	if err := choice.Complete(fields); err != nil {
		t.Fatal(err)
	}
	if s.Reduce != "all" || s.Exact || s.Jobs < 1 || s.LimitStates != 0 || s.LimitMemory != 4096 || s.LimitTime != 0 {
		t.Errorf("presets %+v", s)
	}
	set := func(name, text string) error {
		i := slices.IndexFunc(fields, func(f *choice.Field) bool { return f.Name == name })
		return fields[i].Set(text)
	}
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"reduce", "none", true}, {"reduce", "some", false}, {"jobs", "1", true}, {"jobs", "65536", true}, {"jobs", "0", false},
		{"jobs", "65537", false}, {"limit-memory", fmt.Sprint(1 << 40), true}, {"limit-memory", fmt.Sprint(1<<40 + 1), false},
		{"limit-states", "18446744073709551615", true}, {"limit-states", "-1", false}, {"limit-time", "10m", true},
		{"limit-time", "-1s", false}, {"exact", "true", true}, {"limit-memory", "3", true}, {"limit-states", "7", true},
	} {
		if err := set(c.name, c.text); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.name, c.text, err)
		}
	}
	o, err := s.Options()
	want := explore.Options{Exact: true, Workers: 65536, LimitStates: 7, LimitTime: 10 * time.Minute, LimitMemory: 3 << 20}
	if err != nil || fmt.Sprint(o) != fmt.Sprint(want) {
		t.Errorf("%+v, %v, want %+v", o, err, want)
	}
	s.Reduce = "some"
	if _, err := s.Options(); err == nil {
		t.Error("reductions of no name")
	}
}

// TestListRows: what stands in the list about each kind, once each.
func TestListRows(t *testing.T) {
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	var kinds []string
	for _, row := range list.Rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, cell.String())
		}
		rows[cells[0]+" "+cells[1]] = strings.Join(cells[2:], " | ")
		if len(kinds) == 0 || kinds[len(kinds)-1] != cells[0] {
			kinds = append(kinds, cells[0])
		}
	}
	if first, last := kinds[0], kinds[len(kinds)-1]; first != "protocol" || last != "litmus" {
		t.Errorf("%q: from %s to %s", kinds, first, last)
	}
	want := map[string]string{"protocol " + poke.Native: "what the architecture's current kernel does | "}
	for _, p := range poke.Protocols() {
		want["protocol "+p.Name] = p.Summary + " | " + p.Source
	}
	for _, m := range poke.AllMutations() {
		want["mutation "+m.Name] = m.Summary + " | "
	}
	for _, b := range museum.All() {
		want[b.Kind()+" "+b.Name] = fmt.Sprintf("%s (%s): %s | %s", b.Title, b.Versions, b.Want, b.Source)
	}
	for _, o := range museum.OmittedBugs() {
		want["omitted bug "+o.Name] = o.Title + " | " + o.Reason
	}
	for _, name := range litmus.ShippedNames() {
		test, err := litmus.Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		want["litmus "+name] = test.About + " | " + test.Source
	}
	for name, text := range want {
		if rows[name] != text {
			t.Errorf("%s: %q, want %q", name, rows[name], text)
		}
	}
	if len(list.Rows) != len(want) {
		t.Errorf("%d rows, want %d", len(list.Rows), len(want))
	}
}

// TestNoBugSaysWhy: whole texts, of a slip, of a name that is none, and of a bug that cannot be told.
func TestNoBugSaysWhy(t *testing.T) {
	all := BugNames()
	omitted := museum.OmittedBugs()[0]
	for name, want := range map[string]string{
		"try-get-desk":             fmt.Sprint(spelling.NotOneOf("try-get-desk", all)),
		"zzzzzzzzzzzzzzzzzzzzzzzz": fmt.Sprintf("none of %d scenarios: textpoke check list names them", len(all)),
		omitted.Name:               "it cannot be told in this machine's words: " + omitted.Reason,
	} {
		want = fmt.Sprintf("bug %q: %s", name, want)
		if q, err := BugQuestions([]string{"try-get-desc", name}, false); q != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v, want %s", name, q, err, want)
		}
	}
	if q := asked(t, "try-get-desc", true); !q.Fixed || q.Bug != "try-get-desc" || q.Model == nil {
		t.Errorf("%+v", q)
	}
}

// TestWhyOfLitmus: the file's reason, and why it may differ, one behind the other.
func TestWhyOfLitmus(t *testing.T) {
	for want, r := range map[string]litmus.Row{"": {}, "a": {Why: "a"}, "b": {Differs: "b"}, "a; b": {Why: "a",
		Differs: "b"}} {
		if got := why(&r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestLitmusRuns: tests by name, all of them, or files, whose rows stay in their order; a row that is not as its file
// expects is told; what cannot be opened or read is an error that says how one finds those that can.
func TestLitmusRuns(t *testing.T) {
	const name = "MP.FF+dmb.st+po"
	rows, differ, err := Litmus(t.Context(), []string{name})
	if err != nil || len(rows) == 0 || len(differ) != 0 || rows[0].Test != name {
		t.Fatalf("%d rows, %q, %v", len(rows), differ, err)
	}
	text, err := os.ReadFile("litmus/tests/" + name + ".litmus")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "own.litmus")
	wrong := strings.Replace(string(text), "expect forbidden arm(1,1)", "expect allowed arm(1,1)", 1)
	wrong = strings.Replace(wrong, "weaker arm(1,1): the window lets every fetch lag until the CPU synchronises; here fetches "+
		"are coherent and in program order\n", "", 1)
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	own, differ, err := Litmus(t.Context(), []string{file, name})
	if err != nil || len(own) != 2*len(rows) || own[len(rows)].Test != name || len(differ) != 1 ||
		!strings.Contains(differ[0], "expected allowed") {
		t.Errorf("%d rows, %q, %v", len(own), differ, err)
	}
	if err := os.WriteFile(file, []byte("no test"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{"no-such", "litmus: open no-such: no such file or directory (textpoke check list names those that are shipped)"},
		{file, file + ":"},
	} {
		rows, differ, err := Litmus(t.Context(), []string{name, c.name})
		if err == nil || !strings.Contains(err.Error(), c.want) || rows != nil || differ != nil {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	folder := t.TempDir() // a file that is there comes first, whatever is shipped
	t.Chdir(folder)
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Litmus(t.Context(), []string{name}); err == nil {
		t.Error("a folder was read")
	}
	if all, _, err := Litmus(t.Context(), []string{"all"}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("%d rows of all, with a folder in the place of one: %v", len(all), err)
	}
}

// TestReplayOnEngines: a trace is forced on the engine that was asked for: only the timed one refuses two patchers.
func TestReplayOnEngines(t *testing.T) {
	q := only(t, axis.Choices{"arch": {"x86_64"}, "sites": {"1"}, "cpus": {"3"}, "patchers": {"2"}, "contend": {"true"},
		"mutate": {"drop-sync-1"}, "workload": {"once"}})
	row, err := q.Ask(t.Context(), explore.Options{Workers: 1})
	if err != nil || row.Trace == nil {
		t.Fatal(row.Verdict, err)
	}
	v, err := Replay(sim.LiveEngine, q.Model, row.Trace)
	if err != nil || v.Property != row.Violation.Property {
		t.Errorf("live: %v, %v, want %s", v, err, row.Violation.Property)
	}
	if v, err := Replay(sim.TimedEngine, q.Model, row.Trace); v != nil || err == nil ||
		err.Error() != "the timed engine has one patcher, the trace has 2" {
		t.Errorf("timed: %v, %v", v, err)
	}
}

// TestReplayFurnishes: the timed engine knows the ops of the model, and its sites' first texts: a question that goes over
// from one ops to another breaks there as it does in the checker.
func TestReplayFurnishes(t *testing.T) {
	q := only(t, axis.Choices{"arch": {"arm64"}, "sites": {"1"}, "switch": {"true"}, "mutate": {"no-grace-period"},
		"preempt": {"true"}})
	row, err := q.Ask(t.Context(), explore.Options{Workers: 1})
	if err != nil || row.Trace == nil {
		t.Fatal(row.Verdict, err)
	}
	if v, err := ReplayTimed(q.Model, row.Trace); err != nil || v.Property != cpus.UseAfterFree {
		t.Errorf("%v, %v", v, err)
	}
}
