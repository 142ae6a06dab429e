// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// module makes a module of one package, with a test that runs only half of it, and goes there.
func module(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"m.go": `package m

func Less(a, b int) bool { return a < b }

func nothing() error { return nil }

func Never(a, b int) (n int) {
	note(a, b)
	return a
}

func note(a, b int) {}

func pick(a, b int) int {
	switch {
	case b == 1,
		a == 1:
		return 1
	}
	return 2
}

var table = map[string]func(int, int) bool{
	"or":  func(a, b int) bool { return a == b || b == a || Less(min(a, b), max(b, a)) },
	"and": func(a, b int) bool { return a == b && a == b },
}
`,
		"m_plan9.go": "package m\n\nfunc never() bool { return 1 < 2 }\n",
		"m_test.go": `package m

import "testing"

func TestLess(t *testing.T) {
	if !Less(1, 2) || Less(2, 1) || nothing() != nil {
		t.Fail()
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestFaults: each kind of fault is where it can be, and nowhere else.
func TestFaults(t *testing.T) {
	module(t)
	packages, err := load(t.Context(), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	faults := packages[0].faults()
	var got []string
	for _, f := range faults {
		if !packages[0].compiles(f) {
			t.Errorf("%s does not compile", f.key("."))
		}
		got = append(got, f.key("."))
		if f.old == "a == 1" && f.covered != f.line-2 {
			t.Errorf("coverage of line %d is asked for line %d, want that of the switch", f.line, f.covered)
		}
	}
	want := []string{
		"./m.go Less return: -> if true { return *new(bool) };",
		"./m.go Less compare: a < b -> a <= b",
		"./m.go Never return: -> if true { return };",
		"./m.go Never drop: note(a, b) ->",
		"./m.go Never swap: a, b -> b, a",
		"./m.go pick return: -> if true { return *new(int) };",
		"./m.go pick compare: b == 1 -> b != 1",
		"./m.go pick compare: a == 1 -> a != 1",
		"./m.go table return: -> if true { return *new(bool) };",
		"./m.go table compare: a == b || b == a || Less(min(a, b), max(b, a)) -> " +
			"a == b || b == a && Less(min(a, b), max(b, a))",
		"./m.go table compare: a == b || b == a -> a == b && b == a",
		"./m.go table compare: a == b -> a != b",
		"./m.go table compare: b == a -> b != a",
		"./m.go table swap: min(a, b), max(b, a) -> max(b, a), min(a, b)",
		"./m.go table return: -> if true { return *new(bool) }; #2",
		"./m.go table compare: a == b && a == b -> a == b || a == b",
		"./m.go table compare: a == b -> a != b #2",
		"./m.go table compare: a == b -> a != b #3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMeasure: tests fail, pass, do not end, or are not there.
func TestMeasure(t *testing.T) {
	module(t)
	packages, err := load(t.Context(), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	p, dir := packages[0], t.TempDir()
	if diff := cmp.Diff([]string{"m_plan9.go"}, p.other()); diff != "" {
		t.Error(diff)
	}
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(p.src["m.go"], []byte("return a < b"))
	puts := func(text string) fault {
		return fault{file: "m.go", covered: 5, start: at, end: at + len("return a < b"), new: text}
	}
	faults := []fault{puts("return a > b"), puts("return b > a"), puts("for { }"), {file: "m.go", covered: 10}}
	want := []outcome{found, survived, late, unreached}
	err = p.measure(t.Context(), faults, []string{dir}, 5*time.Second)
	if diff := cmp.Diff(want, outcomes(faults)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := p.measure(t.Context(), []fault{puts("return no")}, []string{dir}, 5*time.Second); err == nil {
		t.Error("what does not compile was found")
	}
	if err := os.Remove(filepath.Join(dir, "m_test.go")); err != nil {
		t.Fatal(err)
	}
	err = p.measure(t.Context(), faults, []string{dir}, 5*time.Second)
	if diff := cmp.Diff([]outcome{unreached, unreached, unreached, unreached}, outcomes(faults)); diff != "" || err != nil {
		t.Error("without tests:", diff, err)
	}
}

func outcomes(faults []fault) (all []outcome) {
	for _, f := range faults {
		all = append(all, f.outcome)
	}
	return all
}

// TestDraw: a draw takes what was asked for, the same for the same seed, none that does not compile.
func TestDraw(t *testing.T) {
	all := make([]fault, 50)
	for i := range all {
		all[i].line = i
	}
	even := func(f fault) bool { return f.line%2 == 0 }
	a, b, c := draw(all, 10, 1, even), draw(all, 10, 1, even), draw(all, 10, 2, even)
	if len(a) != 10 || !slices.Equal(a, b) || slices.Equal(a, c) ||
		slices.ContainsFunc(a, func(f fault) bool { return !even(f) }) {
		t.Errorf("drawn: %v, %v and %v", a, b, c)
	}
	if n := len(draw(all, 0, 1, even)); n != 25 {
		t.Errorf("%d faults of all that compile, want 25", n)
	}
}

// TestReport: a fault that changes nothing counts neither way, tests that do not end find
// what they do not end with, and a reason for one of two that read alike is none for the other.
func TestReport(t *testing.T) {
	p := pkg{&packages.Package{IgnoredFiles: []string{"p/a_plan9.go", "p/a_plan9_test.go"}}, "p", nil}
	tried := []fault{
		{file: "a.go", line: 1, function: "F", kind: "compare", old: "a < b", new: "a <= b", outcome: found},
		{file: "a.go", line: 2, function: "F", kind: "drop", old: "f()", nth: 1, outcome: survived},
		{file: "a.go", line: 3, function: "F", kind: "drop", old: "f()", nth: 2, outcome: survived},
		{file: "a.go", line: 4, function: "F", kind: "drop", old: "g()", nth: 1, outcome: late},
		{file: "a.go", line: 5, function: "F", kind: "drop", old: "h()", nth: 1, outcome: unreached},
	}
	name := filepath.Join(t.TempDir(), "reasons")
	text := "# a comment\np/a.go F drop: f() ->\n\tf is asked twice,\n\twhich is the same\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reasons, err := readReasons(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if got := p.report(&out, 9, tried, reasons); got != 50 {
		t.Errorf("%g %%, want 50", got)
	}
	want := "p                                 9      5      1      2      1     50.0\n" +
		"  p/a.go:3: survived: p/a.go F drop: f() -> #2\n" +
		"  p/a.go:5: no test comes here: p/a.go F drop: h() ->\n" +
		"  p/a_plan9.go: left out: it is for another system or build tag\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(name, []byte("\treason\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readReasons(name); err == nil {
		t.Error("a reason without a fault was read")
	}
}
