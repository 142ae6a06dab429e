// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
)

func cell(t *testing.T, r *trial.Result, row int, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r.Cell(t, row, column), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func near(got, want, by float64) bool { return math.Abs(got-want) <= by }

// TestTimes: times by hand from the cover letter's throughputs.
func TestTimes(t *testing.T) {
	r := trial.Must(t, Experiment)
	want := map[string][2]float64{ // one turn, one call, in ns
		"kernel-count": {3.190576, 0}, "fentry": {9.332798, 6.142222}, "fentry-multi": {10.093567, 6.902991},
		"kprobe": {22.873350, 19.682774}, "kretprobe-multi": {40.778045, 37.587469},
	}
	for i := range r.Table.Rows {
		m := r.Cell(t, i, "mechanism")
		if w, ok := want[m]; ok {
			if !near(cell(t, r, i, "iteration_ns"), w[0], 1e-6) {
				t.Errorf("%s: %v a turn", m, cell(t, r, i, "iteration_ns"))
			}
			if w[1] != 0 && !near(cell(t, r, i, "call_ns"), w[1], 1e-6) {
				t.Errorf("%s: %v a call", m, cell(t, r, i, "call_ns"))
			}
			delete(want, m)
		}
		if strings.HasSuffix(m, "-count") != (r.Cell(t, i, "call_ns") == "") {
			t.Errorf("%s: call_ns %q", m, r.Cell(t, i, "call_ns"))
		}
		if m == "fentry" && (!near(cell(t, r, i, "runs_mps"), 107.443, 1e-3) || !near(cell(t, r, i, "apart_percent"), -0.274,
			1e-3)) {
			t.Errorf("fentry, runs: %v, %v", cell(t, r, i, "runs_mps"), cell(t, r, i, "apart_percent"))
		}
		if known := r.Cell(t, i, "runs_mps") != ""; known && cell(t, r, i, "apart_p") != 1 && m != "fmodret-multi" {
			t.Errorf("%s: p %s", m, r.Cell(t, i, "apart_p"))
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestClaims: t statistics by hand from the five pairs, against the quantiles of
// the t distribution with 4 degrees of freedom: 2.132 (5 %), 2.776 (2.5 %).
func TestClaims(t *testing.T) {
	triggers, _ := published.Triggers.Read("")
	runs, _ := published.TriggerRuns.Read("")
	r := &Config{Margin: 2.5}
	all, err := r.judge(triggers, runs)
	if err != nil || len(all) != 8 {
		t.Fatalf("%d, %v", len(all), err)
	}
	// In the order of the claims, runs and one run: per cent, its interval, verdict.
	for i, w := range []struct {
		percent, low, high float64
		verdict            fit.Verdict
	}{
		{-9.638, -11.217, -8.032, fit.Shown}, {-7.537, -11.11, -3.82, fit.Open},
		{-5.292, -6.339, -4.233, fit.Shown}, {-4.884, -7.22, -2.49, fit.Shown},
		{-0.902, -2.277, 0.491, fit.Shown}, {-2.014, -5.03, 1.10, fit.Open},
		{-0.969, -4.633, 2.835, fit.Open}, {-1.164, -9.15, 7.53, fit.Open},
	} {
		j := all[i]
		by := 0.001
		if j.Table == tableOne {
			by = 0.01
		}
		if !near(j.Percent.Value, w.percent, 0.001) || !near(j.Percent.Low, w.low, by) || !near(j.Percent.High, w.high, by) ||
			j.Verdict != w.verdict {
			t.Errorf("%s (%s): %+v %s, want %+v", j.Text, j.Table, j.Percent, j.Verdict, w)
		}
		if i%2 == 0 && (j.Nothing < 0.05) != !(j.Percent.Low <= 0 && 0 <= j.Percent.High) {
			t.Errorf("%s: p %v beside %+v", j.Text, j.Nothing, j.Percent)
		}
	}
	// Against a claim of 20 % all of the interval lies outside.
	ratios, err := fit.MeanOf(logs(runs, "fentry-multi", "fentry"))
	if j := r.settle(claim{claimed: -20}, tableRuns, ratios); err != nil || j.Verdict != fit.Contradicted ||
		j.Exactly > 0.001 || j.Outside < 0.999 {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment)
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

// TestOwn: tables of another machine, and what is wrong with them.
func TestOwn(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const head = "mechanism,mps,plusminus\n"
	own := trial.Must(t, Experiment, "--published", write(head+"kernel-count,100,1\nuprobe,50,1\n"))
	if own.Cell(t, 1, "call_ns") != "10" || own.Cell(t, 1, "runs_mps") != "" {
		t.Errorf("%v", own.Table.Rows)
	}
	if n := strings.Count(string(own.Document(t, "claims.csv")), "one run"); n != 0 {
		t.Errorf("%d claims were put to a table without their rows", n)
	}
	const runs = "run,fentry_mps,fentry_multi_mps,fentry_multi_all_mps,fexit_mps,fexit_multi_mps,fmodret_mps,fmodret_multi_mps\n"
	const pair = "1,9,8,8,7,7,6,6\n2,9,8,8,7,7,6,6\n"
	for _, tt := range [][2]string{
		{"--published=" + write(head+"fentry,50,1\n"), "t.csv: no row kernel-count, whose time is taken off the others'"},
		{"--published=" + write(head+"kernel-count,100,1\nfentry,150,1\n"),
			"t.csv:3: fentry 150: is not slower than kernel-count, 100 on line 2"},
		{"--published=" + write("mechanism,mps\n"), `t.csv:1: "mechanism,mps": want the columns mechanism,mps,plusminus`},
		{"--published-runs=" + write(runs+pair), "2 runs say nothing of how they spread"},
		{"--margin=0", "want numbers above 0"},
		{"--margin=NaN", "want numbers above 0"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
	// Runs that are all the same leave nothing open.
	same := trial.Must(t, Experiment, "--published-runs", write(runs+pair+"3,9,8,8,7,7,6,6\n"))
	if !strings.Contains(string(same.Document(t, "claims.csv")), "fexit-multi is almost the same as fexit,runs,0,0,0,0,") {
		t.Errorf("%s", same.Document(t, "claims.csv"))
	}
}
