// SPDX-License-Identifier: Apache-2.0

package callops

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCounts: what a call walks and loads, from the structures. Over the list: the
// head, and of each tracer that is attached anywhere itself, its hash, a bucket, and
// the entry if there is one. Functions of both filters share no bucket.
func TestCounts(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time")
	if len(r.Table.Rows) != 34 {
		t.Fatalf("%d rows", len(r.Table.Rows))
	}
	for i := range r.Table.Rows {
		relevant, irrelevant := r.Number(t, i, "relevant_tracers"), r.Number(t, i, "irrelevant_tracers")
		list := 1 + 4*relevant + 3*irrelevant
		walked, loads := relevant+irrelevant, list
		switch {
		case relevant == 0:
			walked, loads = 0, 0
		case r.Cell(t, i, "kernel") == published.WithoutCallOps:
		case relevant == 1: // the literal's ops, and its function
			walked, loads = 0, 2
		default:
			loads = 2 + list
		}
		if r.Number(t, i, "walked") != walked || r.Number(t, i, "loads") != loads || r.Number(t, i, "called") != relevant {
			t.Errorf("row %d: %s loads, %s walked, %s called; want %v, %v, %v", i, r.Cell(t, i, "loads"), r.Cell(t, i, "walked"),
				r.Cell(t, i, "called"), loads, walked, relevant)
		}
		if r.Cell(t, i, "live_ns") != "" {
			t.Error("a time without having asked for one")
		}
	}
}

// TestPredictions: a line of least squares of relative errors, solved here for the
// path that skips: the rows with 0, 1, 10 and 200 unrelated tracers.
func TestPredictions(t *testing.T) {
	const untraced = 156.157
	x := []float64{0, 1, 10, 200}
	y := []float64{1199.068 - untraced, 1374.286 - untraced, 3020.999 - untraced, 39652.219 - untraced}
	var w, wx, wy, wxx, wxy float64
	for i := range x {
		v := 1 / (y[i] * y[i])
		w, wx, wy, wxx, wxy = w+v, wx+v*x[i], wy+v*y[i], wxx+v*x[i]*x[i], wxy+v*x[i]*y[i]
	}
	slope := (w*wxy - wx*wy) / (w*wxx - wx*wx)
	intercept := (wy - slope*wx) / w
	r := trial.Must(t, Experiment, "--no-time")
	checked := 0
	for i := range r.Table.Rows {
		if r.Cell(t, i, "path") != "skip" {
			continue
		}
		n := r.Number(t, i, "irrelevant_tracers")
		if got, want := r.Number(t, i, "predicted_ns"), intercept+slope*n; math.Abs(got-want) > 1e-6*want {
			t.Errorf("%v unrelated: %v, want %v", n, got, want)
		}
		if held := r.Cell(t, i, "held_out") == "true"; held != (n == 2 || n == 100) {
			t.Errorf("%v unrelated: held out %v", n, held)
		}
		checked++
	}
	if checked != 6 {
		t.Errorf("%d rows were checked", checked)
	}
	// Who holds nothing out lets the line know all rows.
	all := trial.Must(t, Experiment, "--no-time", "--hold", "9999")
	if strings.Contains(string(all.Document(t, "report.md")), "held out,") {
		t.Error("a row was held out")
	}
}

// TestLive: over the list more tracers take longer, with a literal they do not. A
// machine that is busy with other things shows that too.
func TestLive(t *testing.T) {
	r := trial.Must(t, Experiment, "--repeats", "6")
	least := map[string]float64{}
	for i := range r.Table.Rows {
		low, mid, high := r.Number(t, i, "live_low_ns"), r.Number(t, i, "live_ns"), r.Number(t, i, "live_high_ns")
		if low > mid || mid > high || low <= 0 {
			t.Errorf("row %d: %v %v %v", i, low, mid, high)
		}
		least[r.Cell(t, i, "kernel")+" "+r.Cell(t, i, "relevant_tracers")+" "+r.Cell(t, i, "irrelevant_tracers")] = low
	}
	if a, b := least["without_call_ops 1 10"], least["without_call_ops 1 200"]; b < 4*a {
		t.Errorf("10 unrelated tracers over the list: %v ns, 200: %v", a, b)
	}
	if a, b := least["with_call_ops 1 200"], least["without_call_ops 1 200"]; b < 4*a {
		t.Errorf("200 unrelated tracers with a literal: %v ns, over the list: %v", a, b)
	}
	report := string(r.Document(t, "report.md"))
	if !strings.Contains(report, "On this machine an unrelated tracer adds") ||
		!strings.Contains(report, "| this machine |") {
		t.Error("the report does not say what was measured")
	}
	fits := string(r.Document(t, "fits.csv"))
	if !strings.Contains(fits, "\nlive list,6,") || !strings.Contains(fits, "\nlive literal,6,") {
		t.Errorf("lines: %s", fits)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := trial.RunWith(ctx, t, Experiment); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("cancelled: %v", r.Err)
	} else {
		trial.CutShort(t, Experiment)
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time")
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

const head = "kernel,block,relevant_tracers,irrelevant_tracers,calls,total_ns,per_call_ns,overhead_ns\n"

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestOwn: a table of another machine, which has little in it and a slip.
func TestOwn(t *testing.T) {
	own := write(t, head+"with_call_ops,irrelevant0,0,0,10,100,10,\nwith_call_ops,relevant,1,0,10,150,15,6\n")
	logs, seen := observer.New(zap.WarnLevel)
	q := Experiment().New()
	if err := errors.Join(q.Field("no-time").Set("true"), q.Field("published").Set(own)); err != nil {
		t.Fatal(err)
	}
	a, err := q.Run(t.Context(), experiments.Lab{Seed: 1, Log: zap.New(logs)})
	if err != nil || a.No == nil || !strings.HasSuffix(a.No.Error(), "t.csv:3: overhead_ns 6: 15-10 is 5") {
		t.Fatalf("%v, %+v", err, a)
	}
	if all := seen.All(); len(all) != 1 || !strings.HasSuffix(all[0].Message, "t.csv:3: overhead_ns 6: 15-10 is 5") {
		t.Errorf("%v", all)
	}
	r := &trial.Result{Answer: a, Table: a.Table}
	if r.Cell(t, 1, "overhead_ns") != "5" || r.Cell(t, 1, "path") != "literal" || r.Cell(t, 1, "predicted_ns") != "" {
		t.Errorf("%v", a.Table.Rows)
	}
	report := string(r.Document(t, "report.md"))
	if !strings.Contains(report, "a line through 1 points has no error to be known by") ||
		!strings.Contains(report, "t.csv:3: overhead_ns 6: 15-10 is 5") {
		t.Error(report)
	}
	r.Document(t, "call-ops.svg")
}

// TestOdd: tables that make no lines and no picture to speak of are answered.
func TestOdd(t *testing.T) {
	for _, rows := range []string{
		"with_call_ops,irrelevant0,0,0,1,0,0,\n",
		"with_call_ops,irrelevant0,0,0,1,4611686018427387903,4611686018427387903,\nwith_call_ops,relevant,1,0,1,0,0,0\n",
		"without_call_ops,irrelevant0,0,0,1,5,5,\nwithout_call_ops,irrelevant1,1,0,1,5,5,0\nwithout_call_ops,irrelevant1,1,1,1,5,5,0\n" +
			"without_call_ops,irrelevant1,1,2,1,5,5,0\nwithout_call_ops,irrelevant1,1,3,1,5,5,0\nwithout_call_ops,irrelevant1,1,9,1,5,5,0\n",
		"with_call_ops,irrelevant0,0,0,7,50,7,\nwith_call_ops,irrelevant1,1,0,3,90,30,23\nwith_call_ops,irrelevant1,1,1,3,90,30,23\nwith_call_ops,irrelevant1,1,9,3,90,30,23\n",
	} {
		r := trial.Run(t, Experiment, "--no-time", "--published", write(t, head+rows))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, d := range r.Documents {
			if len(r.Document(t, d.Name)) == 0 {
				t.Errorf("%s is empty", d.Name)
			}
		}
		if err := r.Table.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--repeats=5", "want 6 or more"},
		{"--hold=x", "want whole numbers from 0 to 10000"},
		{"--published=" + write(t, head), "there are no rows"},
		{"--published=" + write(t, head+"with_call_ops,relevant,10001,0,1,1,1,1\n"),
			"t.csv:2: 10001 tracers: want 10000 at most"},
		{"--published=" + write(t, head+"with_call_ops,relevant,1,0,1,1,1,1\n"),
			`t.csv:2: kernel "with_call_ops": has no row with 0 relevant`},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
}
