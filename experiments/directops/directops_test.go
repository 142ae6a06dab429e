// SPDX-License-Identifier: Apache-2.0

package directops

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func number64(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCalls holds calls against what the way's own drawing says: near and alone
// nothing is loaded; far and alone the literal and the ops; the list has an
// entry for everybody; one ops looks its filter and then the table up.
func TestCalls(t *testing.T) {
	r := trial.Must(t, Experiment)
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
	seen := map[string]int{}
	for i := range r.Table.Rows {
		cell := func(column string) string { return r.Cell(t, i, column) }
		loads, lookups, entries := number64(t, cell("loads")), number64(t, cell("hash_lookups")), number64(t,
			cell("list_entries"))
		n := number64(t, cell("trampolines"))
		key := cell("ops") + " " + cell("range") + " " + cell("path")
		seen[key]++
		var ok bool
		switch key {
		case "each near fast", "one near fast":
			ok = loads == 0 && lookups == 0 && entries == 0 && cell("saves_registers") == "false"
		case "each far fast":
			ok = loads == 2 && lookups == 0 && entries == 0 && cell("saves_registers") == "false"
		case "one far fast":
			// literal, ops, hash, bucket, and one entry at least; a bucket of 2^12 holds
			// about n / 4096, of which half are looked at.
			ok = loads >= 5 && loads <= 6+n/4096 && lookups == 1 && entries == 0 && cell("saves_registers") == "true"
		case "each near slow", "each far slow":
			ok = entries == n+1 && lookups == n && loads >= 3*n && cell("saves_registers") == "true"
		case "one near slow", "one far slow":
			ok = entries == 2 && lookups == 2 && loads < 12+2*n/4096 && cell("saves_registers") == "true"
		}
		if !ok {
			t.Errorf("%s, %s, %g trampolines: %g loads, %g lookups, %g entries, registers saved %s", cell("arch"), key, n, loads,
				lookups, entries, cell("saves_registers"))
		}
		if got, want := cell("in_kernel") == "true", cell("ops") == "each" || cell("arch") == "x86_64"; got != want {
			t.Errorf("%s %s: in a kernel %v", cell("arch"), key, got)
		}
		if cell("arch") == "x86_64" && cell("range") == "far" {
			t.Error("x86_64 has no way to trampolines out of range")
		}
	}
	if want := 8; len(seen) != want || seen["each near fast"] != 3*4 || seen["one far slow"] != 2*4 {
		t.Errorf("%v", seen)
	}
}

// TestExact works single calls out by hand: one trampoline, and the list.
func TestExact(t *testing.T) {
	r := trial.Must(t, Experiment, "--arch", "x86_64,arm64", "--trampolines", "1")
	want := map[string]string{
		// head, two ops, the filter's hash, bucket and entry; and what the entry
		// loads: literal and ops, or function_trace_op.
		"arm64 each far slow": "8", "arm64 each near slow": "8", "x86_64 each near slow": "7",
		// The table's hash, bucket and entry on top.
		"arm64 one far slow": "11", "arm64 one near slow": "11", "x86_64 one near slow": "10",
		"arm64 one far fast": "5", "arm64 each far fast": "2",
	}
	for i := range r.Table.Rows {
		key := strings.Join([]string{r.Cell(t, i, "arch"), r.Cell(t, i, "ops"), r.Cell(t, i, "range"), r.Cell(t, i, "path")},
			" ")
		if w, ok := want[key]; ok && r.Cell(t, i, "loads") != w {
			t.Errorf("%s: %s loads, want %s", key, r.Cell(t, i, "loads"), w)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("no rows of %v", want)
	}
	if text := string(r.Document(t, "attach.csv")); !strings.Contains(text, "x86_64-6.12,fentry,1,1,10,11,2,1,") ||
		!strings.Contains(text, "x86_64-7.2,tracing-multi,1,1,17,19,2,0,") {
		t.Errorf("attach.csv:\n%s", text)
	}
}

// TestOthers: other figures, and what is wrong.
func TestOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times.csv")
	if err := os.WriteFile(file,
		[]byte("case,functions,attach_s,detach_s,note\na per-trampoline ops,10,3,,\na single direct "+
			"ops,10,1,,\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := trial.Must(t, Experiment, "--arch", "arm64", "--trampolines", "1", "--published", file)
	if report := string(r.Document(t, "report.md")); !strings.Contains(report, "| 2 | 1 | -50.0 % |") {
		t.Errorf("2 s in 10 waits of 100 ms:\n%s", report)
	}
	for args, want := range map[string]string{
		"--trampolines 0":  "want whole numbers from 1 to 40000",
		"--arch amr64":     "did you mean arm64?",
		"--published nope": "nope",
	} {
		if r := trial.Run(t, Experiment, strings.Fields(args)...); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v", args, r.Err)
		}
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) { trial.CutShort(t, Experiment) }
