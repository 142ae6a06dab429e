// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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
`,
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
	faults, err := packages[0].faults()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		if !packages[0].compiles(f) {
			t.Errorf("%s does not compile", f.key("."))
		}
		got = append(got, f.key("."))
	}
	want := []string{
		"./m.go Less return: -> if true { return *new(bool) };",
		"./m.go Less compare: a < b -> a <= b",
		"./m.go Never return: -> if true { return };",
		"./m.go Never drop: note(a, b) ->",
		"./m.go Never swap: a, b -> b, a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
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

// TestReport: a fault that changes nothing counts neither way.
func TestReport(t *testing.T) {
	r := result{dir: "p", all: 9, faults: []fault{
		{file: "a.go", line: 1, function: "F", kind: "compare", old: "a < b", new: "a <= b"},
		{file: "a.go", line: 2, function: "F", kind: "drop", old: "f()"},
		{file: "a.go", line: 3, function: "F", kind: "drop", old: "g()"},
	}, survived: []string{"", "survived", "survived"}}
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
	if got := r.report(&out, reasons, false); got != 50 {
		t.Errorf("%g %%, want 50", got)
	}
	want := "p                                 9      3      1      1     50.0\n" +
		"  p/a.go:3: survived: p/a.go F drop: g() ->\n"
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
