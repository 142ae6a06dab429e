// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRows holds rows against formulas: 4N + 6 rounds and 3N + 7, and N wakeups for RCU,
// N (N + 1) / 2 entries and the filters' N, a wait each; and their parts against the whole.
func TestRows(t *testing.T) {
	r := trial.Must(t, Experiment)
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
	checked := 0
	for i := range r.Table.Rows {
		cell := func(column string) string { return r.Cell(t, i, column) }
		sum, rounds := 0.0, 0.0
		for _, c := range r.Table.Columns {
			if strings.HasSuffix(c.Name, "_ns") && !strings.HasPrefix(c.Name, "modelled_") {
				sum += number(t, cell(c.Name))
			}
			if strings.HasPrefix(c.Name, "rounds_") && !strings.HasSuffix(c.Name, "_ns") {
				rounds += number(t, cell(c.Name))
			}
		}
		if whole := number(t, cell("modelled_ns")); math.Abs(sum-whole) > 1e-9*whole || rounds != number(t, cell("rounds")) {
			t.Errorf("row %d: parts are %g ns of %g, %g rounds of %s", i, sum, whole, rounds, cell("rounds"))
		}
		if cell("kernel") != "x86_64-6.12" || cell("way") != "fentry" || cell("functions") != "50000" {
			continue
		}
		checked++
		want := []string{"200006", "1250075000", "0"}
		if cell("direction") == "detach" {
			want = []string{"200007", "0", "50000"}
		}
		if got := []string{cell("rounds"), cell("entries_copied"), cell("grace_periods")}; strings.Join(got,
			" ") != strings.Join(want, " ") || cell("extrapolated") != "true" {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	if checked != 2 {
		t.Errorf("%d rows were checked", checked)
	}
}

// TestPredicted works two predictions out by hand.
func TestPredicted(t *testing.T) {
	r := trial.Must(t, Experiment, "--functions", "1")
	text := string(r.Document(t, "predicted.csv"))
	for _, want := range []string{
		// 1.069 / 48712 * 26620 = 0.58418
		"kprobe_multi modules 2023,attach,26620,time in proportion to functions,kprobe_multi 2022,0.182,0.5841",
		// 1.666961239 + 27 * 0.1
		"bpftrace fentry ksys_* per-trampoline ops,both,27,one wait of 100 ms a function,bpftrace fentry ksys_* single " +
			"direct ops,4.416004987,4.366961239",
		// (4.416004987 - 1.666961239) / 27 = 0.10182
		"a detach of x86_64-6.12 in an emulator,detach,1,one wait of 101.8 ms,bpftrace fentry ksys_* per-trampoline ops; " +
			"bpftrace fentry ksys_* single direct ops,0.129,0.1018",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	measured := string(r.Document(t, "measured.csv"))
	if n := strings.Count(measured, "\n"); n != 1+10*8+15 {
		t.Errorf("%d lines in measured.csv", n)
	}
	if !strings.Contains(measured, "x86_64-7.2,tracing-multi,attach,255,reading,271,272,1,") {
		t.Errorf("measured.csv:\n%s", measured)
	}
}

// TestPairs holds every published time against the range of its predictions.
func TestPairs(t *testing.T) {
	times, err := published.AttachTimes.Read("")
	if err != nil {
		t.Fatal(err)
	}
	predictions, err := tallies{}.predict(times)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []experiments.Comparison
	for _, p := range predictions {
		pairs = append(pairs, p.Pair())
	}
	for _, own := range []string{"kprobe_multi", "single direct ops", "bpftrace", "a detach"} {
		trial.Pairs(t, own, pairs)
	}
}

// TestOthers: somebody else's times, and what is wrong.
func TestOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times.csv")
	if err := os.WriteFile(file,
		[]byte("case,functions,attach_s,detach_s,note\nkprobe_multi here,100,1,2,\nnothing "+
			"known,5,1,,\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := trial.Must(t, Experiment, "--functions", "100,200", "--kernel", "x86_64-6.12", "--way", "kprobe-multi",
		"--calibration", "vm-2", "--published", file)
	if len(r.Table.Rows) != 4 || r.Cell(t, 0, "extrapolated") != "false" || r.Cell(t, 2, "extrapolated") != "true" ||
		r.Cell(t, 0, "calibration") != "vm-2" {
		t.Errorf("%v", r.Table.Rows)
	}
	if text := string(r.Document(t, "predicted.csv")); !strings.Contains(text, "kprobe_multi here,detach,100,") ||
		strings.Contains(text, "kprobe_multi 2022") {
		t.Errorf("predicted.csv:\n%s", text)
	}
	if report := string(r.Document(t, "report.md")); !strings.Contains(report, "nothing known") {
		t.Errorf("the case of which nothing is known is not named:\n%s", report)
	}
	for args, want := range map[string]string{
		"--functions 0":      "want whole numbers from 1 to 50000",
		"--way fenty":        "did you mean fentry?",
		"--kernel x86-6.12":  "did you mean x86_64-6.12?",
		"--calibration nope": "nope",
		"--published nope":   "nope",
	} {
		if r := trial.Run(t, Experiment, strings.Fields(args)...); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v", args, r.Err)
		}
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) { trial.CutShort(t, Experiment) }
