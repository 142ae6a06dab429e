// SPDX-License-Identifier: Apache-2.0

package refcount

import (
	"flag"
	"math"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func numeric(t *testing.T, r *trial.Result, row int, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r.Cell(t, row, column), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// small are machines on which the shape can be seen already.
var small = []string{"--calibration", "refcount-480@2,refcount-480@30,refcount-480@60,refcount-480@120",
	"--out-of-turn", "0.001,1"}

// TestShape: with a counter for each CPU an update's time grows with the rounds
// alone. With a shared one, nothing is lost before the line is full; from then on the
// time grows with more than the square of the CPUs where they are served in turn, and
// with less where lots are drawn. Small batches see no difference.
func TestShape(t *testing.T) {
	r := trial.Must(t, Experiment, small...)
	at := map[string]float64{}
	for i := range r.Table.Rows {
		key := strings.Join([]string{r.Cell(t, i, "entries"), r.Cell(t, i, "refs"), r.Cell(t, i, "out_of_turn"),
			r.Cell(t, i, "cpus")}, " ")
		at[key] = numeric(t, r, i, "update_ns")
		if r.Cell(t, i, "rounds") != "3" || r.Cell(t, i, "ratio") != "" {
			t.Errorf("%s: %v", key, r.Table.Rows[i])
		}
	}
	if len(at) != 4*2*3 {
		t.Fatalf("%d rows", len(at))
	}
	same := func(a, b string) {
		if math.Abs(at[a]/at[b]-1) > 0.01 {
			t.Errorf("%s takes %.0f ns, %s %.0f", a, at[a], b, at[b])
		}
	}
	same("2 shared 0.001 120", "2 percpu  120")
	same("164 shared 0.001 2", "164 percpu  2")
	exponent := func(key string) float64 { return math.Log2(at[key+" 120"] / at[key+" 60"]) }
	if e := exponent("164 percpu "); e > 0.5 {
		t.Errorf("per CPU: time grows with the CPUs to the %.2f", e)
	}
	turn, lots := exponent("164 shared 0.001"), exponent("164 shared 1")
	if turn < 2 || lots > turn || at["164 shared 1 120"] < 2*at["164 percpu  120"] {
		t.Errorf("in turn time grows with the CPUs to the %.2f, with lots to the %.2f", turn, lots)
	}
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
}

// TestPublished: on the published machine a shared counter costs near a second, within
// an order of magnitude of the published figure, and nothing else costs a millisecond.
func TestPublished(t *testing.T) {
	if !*long {
		t.Skip("only with -long")
	}
	r := trial.Must(t, Experiment)
	for i := range r.Table.Rows {
		if r.Cell(t, i, "cpus") != "480" {
			continue
		}
		ratio := numeric(t, r, i, "ratio")
		low, high := 0.5, 2.0
		switch {
		case r.Cell(t, i, "entries") == "164" && r.Cell(t, i, "out_of_turn") == "0.001":
			low, high = 0.1, 10
		case r.Cell(t, i, "entries") == "164" && r.Cell(t, i, "refs") == "shared":
			continue
		}
		if ratio < low || ratio > high {
			t.Errorf("row %d: %.3f times the published figure", i, ratio)
		}
	}
	r.Figure(t)
}

// TestPairs holds every published figure against the range of the model.
func TestPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("eight seconds: not with -short")
	}
	pairs := trial.Must(t, Experiment, "--calibration=refcount-480", "--out-of-turn=0.001").Figures
	if len(pairs) != 4 {
		t.Errorf("%d figures, want 4", len(pairs))
	}
	for _, own := range []string{"shared counter", "counter for each CPU"} {
		trial.Pairs(t, own, pairs)
	}
}

// TestWrong: what cannot be asked is said in one line.
func TestWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--out-of-turn=0", "want numbers above 0"}, {"--out-of-turn=2", "want numbers above 0"}, {"--refs=shard",
			"did you mean shared"},
		{"--entries=0", "want whole numbers from 1"}, {"--calls=-1", "want a number from 0"}, {"--published=nosuch.csv",
			"nosuch.csv"},
		{"--calibration=refcount", "refcount-480"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
}

// TestFew: without one of the counters, or without calls, there is still an answer.
func TestFew(t *testing.T) {
	for args, want := range map[string]string{
		"--refs=percpu":                    "No update had a shared counter",
		"--refs=shared":                    "that share a counter need",
		"--refs=shared,percpu --calls=0":   "with a counter for each",
		"--refs=none,shared --entries=164": "that share a counter need",
	} {
		r := trial.Must(t, Experiment, append(strings.Fields(args), "--calibration", "refcount-480@4")...)
		if !strings.Contains(r.Headline, want) {
			t.Errorf("%s: %q", args, r.Headline)
		}
		for _, d := range r.Documents {
			r.Document(t, d.Name)
		}
	}
	trial.CutShort(t, Experiment)
}
