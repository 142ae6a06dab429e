// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/results"
)

// TestFiles looks at what --out leaves: every table the manifest names, with the
// columns and rows that it says, and units in the names of columns.
func TestFiles(t *testing.T) {
	for _, line := range []string{
		"run --records gen:n=200 --cpus busy=1,isolated=1,idle=1 --protocol native,breakpoint",
		"plan --records gen:n=200", "plan --steps --records gen:n=9", "version", "records list",
		"records show gen:n=20", "records convert gen:n=20", "interrupts sample -- true",
		"experiment list", "experiment mutations --arch arm64 --protocol native",
		"experiment kernel-interrupts", "plan --records gen:n=20 --scenario function-tracer",
	} {
		t.Run(line, func(t *testing.T) {
			dir := t.TempDir()
			r := textpoke(t, append([]string{"--out", dir, "--seed", "5"}, strings.Fields(line)...)...)
			if r.code > exitNo {
				t.Skipf("exit code %d: %s", r.code, r.err)
			}
			m := manifest(t, dir)
			if !m.Complete || m.Version != built.Version || *m.Seed != 5 || m.Started.IsZero() || m.Finished.Before(m.Started) {
				t.Errorf("manifest %+v", m)
			}
			if want := "textpoke " + strings.Fields(line)[0]; !strings.HasPrefix(strings.Join(m.Args, " "), want) {
				t.Errorf("args %q do not begin with %s", m.Args, want)
			}
			checkFiles(t, dir, m)
		})
	}
}

func manifest(t *testing.T, dir string) results.Manifest {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, results.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var m results.Manifest
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// checkFiles compares a directory with its manifest.
func checkFiles(t *testing.T, dir string, m results.Manifest) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if !m.Complete { // what a sweep that was cut short can be resumed from
		files = slices.DeleteFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), ".csv.part") })
	}
	if err != nil || len(files) != len(m.Files)+len(m.Documents)+1 {
		t.Errorf("%d files, %d documents and the manifest were expected: %v %v", len(m.Files), len(m.Documents), files, err)
	}
	for _, name := range m.Documents {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("document %s: %v", name, err)
		}
	}
	measure := regexp.MustCompile(`elapsed|stolen|bytes|_time|duration|size`)
	unit := regexp.MustCompile(`_(ns|bytes|per_s|hangs_on)$`) // what a time hangs on is a name
	for _, f := range m.Files {
		s := readSheet(t, dir, f.Name)
		if len(s.rows) != f.Rows || len(s.header) != len(f.Columns) {
			t.Errorf("%s: %d rows, %d columns; the manifest says %d, %d", f.Name, len(s.rows), len(s.header), f.Rows,
				len(f.Columns))
			continue
		}
		for i, c := range f.Columns {
			if s.header[i] != c.Name || c.Doc == "" {
				t.Errorf("%s: column %q is %+v in the manifest", f.Name, s.header[i], c)
			}
			if measure.MatchString(c.Name) && !unit.MatchString(c.Name) {
				t.Errorf("%s: column %s lacks a unit", f.Name, c.Name)
			}
		}
	}
}

// TestCPUsAddUp holds the rows by CPU against those of the runs.
func TestCPUsAddUp(t *testing.T) {
	dir := t.TempDir()
	done(t, "run", "--arch", "x86_64,riscv64", "--records", "gen:n=500", "--protocol",
		"native,stop-machine,breakpoint-lazy", "--cpus", "busy=2,idle=1,isolated=1", "--out", dir)
	runs, perCPU := readSheet(t, dir, "run.csv"), readSheet(t, dir, "cpus.csv")
	type sums struct{ ipis, rounds, traps int }
	got := make([]sums, len(runs.rows))
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for _, row := range perCPU.rows {
		s := &got[number(row["run"])]
		s.ipis += number(row["ipis"])
		s.rounds += number(row["sent_rounds"])
		if row["cause"] == "sync" { // a CPU's traps stand in the rows of all causes
			s.traps += number(row["traps"])
		}
	}
	for i, row := range runs.rows {
		want := sums{number(row["ipis"]), number(row["rounds"]) + number(row["stops"]), number(row["traps"])}
		if got[i] != want {
			t.Errorf("run %d: the CPUs have %+v, the run %+v", i, got[i], want)
		}
	}
}

// TestCutShort ends runs after their first row: it is written, and what did not
// come to its end is marked.
func TestCutShort(t *testing.T) {
	for line, want := range map[string]string{
		"run --arch x86_64 --records gen:n=500 --cpus 2 --buffer 64":                 "run.csv",
		"run --arch riscv64 --records gen:n=3000 --cpus 2 --buffer 1,2,3,4":          "run.csv",
		"run --records gen:n=500 --cpus 2 --buffer 8 --for 20ms":                     "run.csv",
		"plan --records gen:n=500 --cpus 2,3 --order table,random --jobs 1":          "plan.csv",
		"plan --records gen:n=500 --jobs 3 --seed " + manySeeds(200):                 "plan.csv",
		"experiment mutations --arch arm64":                                          "mutations.csv",
		"plan --records gen:n=5 --cpus 2,3 --arch x86_64 --buffer 1 --steps":         "steps.csv",
		"plan --records gen:n=5 --cpus 2,3 --arch x86_64 --steps --buffer 1,2,3,4,5": "steps.csv",
	} {
		t.Run(line, func(t *testing.T) {
			dir := t.TempDir()
			ctx, out := cancelled(t, 2) // the header and a row
			var stderr bytes.Buffer
			code := run(ctx, append(strings.Fields(line), "--format", "csv", "--out", dir), streams{nil, out, &stderr})
			said := "textpoke: cut short; what was finished is written and marked incomplete"
			if !strings.Contains(line, "--steps") && !strings.HasPrefix(line, "experiment") {
				said += "; go on with --resume"
			}
			if code != exitCut || stderr.String() != said+"\n" {
				t.Errorf("exit code %d, stderr: %s", code, stderr.String())
			}
			m := manifest(t, dir)
			if m.Complete {
				t.Error("the manifest says complete")
			}
			checkFiles(t, dir, m)
			s := readSheet(t, dir, want)
			if len(s.rows) == 0 || want == "run.csv" && len(s.rows) != 1 {
				t.Errorf("%s has %d rows", want, len(s.rows))
			}
			if b, _ := os.ReadFile(filepath.Join(dir, want)); string(b) != out.String() {
				t.Errorf("%s is not what stdout was", want)
			}
		})
	}
}

// manySeeds is a list of n seeds.
func manySeeds(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i)
	}
	return b.String()[1:]
}

// TestCutShortAtOnce has nothing to write but headers. What is said begins with that it is not all.
func TestCutShortAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, line := range []string{"run --records gen:n=500", "plan --records gen:n=500", "records show gen:n=500",
		"prove --arch x86_64", "experiment all --out " + t.TempDir()} {
		var out, stderr bytes.Buffer
		if code := run(ctx, strings.Fields(line), streams{nil, &out, &stderr}); code != exitCut ||
			strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, stderr: %s", line, code, stderr.String())
		}
		if out.Len() > 0 && !strings.HasPrefix(out.String(), "INCOMPLETE") {
			t.Errorf("%s: it says\n%s", line, &out)
		}
	}
}

// TestMutation puts a defect in, sees it reported, and repeats it as told. One
// slot a batch makes thousands of updates, each of which may go wrong.
func TestMutation(t *testing.T) {
	r := textpoke(t, "run", "--mutate", "drop-sync-1", "--arch", "x86_64", "--records", "gen:n=2000", "--buffer", "1",
		"--cpus", "3",
		"--filter", "fn*", "--filter", "!fn9*", "--filter", "!it's", "--format", "csv")
	if r.code != exitNo {
		t.Fatalf("exit code %d, stderr: %s", r.code, r.err)
	}
	first := mustSheet(t, r.out) // violations of scripts' runs are on stderr
	found := 0
	for _, row := range first.rows {
		n, err := strconv.Atoi(row["violations"])
		if err != nil || row["mutation"] != "drop-sync-1" {
			t.Errorf("row %v", row)
		}
		found += n
	}
	shown := regexp.MustCompile(`(?m)^  torn-fetch: cpu \d, site \d+ at 0xffffffff81[0-9a-f]+, bytes( [0-9a-f]{2}){5}: `)
	if found == 0 || !shown.MatchString(r.err) {
		t.Errorf("%d violations; no torn fetch is shown: %.3000s", found, r.err)
	}
	_, command, ok := strings.Cut(r.err, "  repeat with: textpoke ")
	if !ok {
		t.Fatalf("no command that repeats it: %.3000s", r.err)
	}
	repeat := words(t, strings.TrimSpace(command))
	dir := t.TempDir()
	again := textpoke(t, append(repeat, "--out", dir, "--log", "error")...) // nothing is called it's
	if again.code != exitNo || again.err != "" || !shown.MatchString(again.out) {
		t.Errorf("%q: exit code %d, stderr: %s, stdout: %.3000s", repeat, again.code, again.err, again.out)
	}
	second := readSheet(t, dir, "run.csv")
	for _, column := range append([]string{"seed", "direction"}, first.header[:slices.Index(first.header, "engine")]...) {
		if got, want := second.rows[0][column], first.rows[0][column]; got != want {
			t.Errorf("repeated, %s is %q, not %q", column, got, want)
		}
	}
	if !manifest(t, dir).Complete {
		t.Error("the answer no is complete")
	}
}

// words takes a command line apart as a shell does, as far as quote needs.
func words(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	for line != "" {
		var word strings.Builder
		for line != "" && line[0] != ' ' {
			switch line[0] {
			case '\'':
				in, rest, ok := strings.Cut(line[1:], "'")
				if !ok {
					t.Fatalf("an open quote: %s", line)
				}
				word.WriteString(in)
				line = rest
			case '\\':
				word.WriteByte(line[1])
				line = line[2:]
			default:
				word.WriteByte(line[0])
				line = line[1:]
			}
		}
		out = append(out, word.String())
		line = strings.TrimLeft(line, " ")
	}
	return out
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", "a b", "it's", "''", `\`, `"`, "vfs_*", "!x", "$HOME", ":mod:ext4", "ü", "a\nb"} {
		if got := words(t, "x "+quote(s)+" y"); len(got) != 3 || got[1] != s {
			t.Errorf("quote(%q) is %s, read as %q", s, quote(s), got)
		}
	}
}

// TestArgsRepeat runs what a manifest says again.
func TestArgsRepeat(t *testing.T) {
	dir := t.TempDir()
	first := done(t, "plan", "--log", "error", "--records", smallTable, "--records", "gen:n=9", "--cpus", "2,4", "--cpus",
		"busy=1,idle=2", "--order", "random,table",
		"--filter", "fn1*", "--filter", "!fn11?", "--format", "csv", "--out", dir, "--seed", "99")
	if again := done(t, manifest(t, dir).Args[1:]...); again != first {
		t.Errorf("%q gives something else", manifest(t, dir).Args)
	}
}
