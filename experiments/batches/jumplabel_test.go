// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/kernels/published"
)

// few is the experiment with so few switches that it is quick.
var fewJumpLabel = []string{"--entries", "1,4,56,256", "--repeat", "20"}

// TestJumpLabelRows: rounds are those of the series, exactly; times are near what its machine
// took; and what was fitted is marked.
func TestJumpLabelRows(t *testing.T) {
	r := trial.Must(t, JumpLabel, fewJumpLabel...)
	want := []struct{ entries, way, rounds, published, basis string }{
		{"1", "one by one", "3", "", "prediction"}, {"1", "batched", "3", "", "prediction"},
		{"4", "one by one", "12", "12", "prediction"}, {"4", "batched", "3", "", "prediction"},
		{"56", "one by one", "168", "168", "fitted"}, {"56", "batched", "3", "3", "fitted"},
		{"256", "one by one", "768", "", "prediction"}, {"256", "batched", "3", "", "prediction"},
	}
	if len(r.Table.Rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(r.Table.Rows), len(want))
	}
	for i, w := range want {
		cell := func(column string) string { return r.Cell(t, i, column) }
		if cell("entries") != w.entries || cell("way") != w.way || cell("rounds") != w.rounds ||
			cell("rounds_published") != w.published || cell("basis") != w.basis {
			t.Errorf("%v, want %v", r.Table.Rows[i], w)
		}
		number := func(column string) float64 {
			v, err := strconv.ParseFloat(cell(column), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		// Four standard errors about the mean are two intervals.
		mean, half := number("update_ns"), number("update_high_ns")-number("update_ns")
		if fit := number("update_fit_ns"); math.Abs(fit-mean) > 2.1*half {
			t.Errorf("%v: modelled %v +- %v ns, the fit has %v", w, mean, half, fit)
		}
		if cell("error_percent") != "" && math.Abs(number("error_percent")) > 10 {
			t.Errorf("%v: off by %s %%", w, cell("error_percent"))
		}
	}
	trial.Golden(t, "jump-label.md", r.Document(t, "report.md"))
	for _, picture := range []string{"", "-handler"} {
		if svg := string(r.Document(t, "jump-label"+picture+".svg")); !strings.Contains(svg, ">published<") {
			t.Errorf("%q lacks what was published", picture)
		}
	}
}

// TestJumpLabelPairs holds every published figure against the range of the model.
func TestJumpLabelPairs(t *testing.T) {
	pairs := trial.Must(t, JumpLabel, "--entries=56", "--calibration", "jump-label-24", "--repeat=20").Figures
	trial.Pairs(t, "sched_schedstats", pairs)
	trial.Pairs(t, "breakpoints run into", pairs)
}

// TestJumpLabelTimeline: the published key's first switch is there both ways, 168 rounds and 3
// with an arrow to each of the other 23 CPUs; keys that nobody published are not.
func TestJumpLabelTimeline(t *testing.T) {
	r := trial.Must(t, JumpLabel, "--entries", "4,56", "--repeat", "2")
	f, err := readtrace.Read(r.Document(t, "jump-label"+".pftrace"))
	if err != nil {
		t.Fatal(err)
	}
	arrows := 0
	for _, track := range f.Tracks {
		for _, slice := range track.Slices {
			arrows += len(slice.Leaves)
		}
	}
	if want := (168 + 3) * 23; arrows != want {
		t.Errorf("%d arrows, want %d", arrows, want)
	}
	for _, d := range trial.Must(t, JumpLabel, "--entries", "4", "--repeat", "2").Documents {
		if d.Name == "jump-label"+".pftrace" {
			t.Errorf("%s of no published key", d.Name)
		}
	}
}

// fitOf is what the form makes of the published pair.
func fitOf(t interface{ Fatal(args ...any) }, p pairOf) map[string]float64 {
	f, err := experiments.ParseForm("jump-label.experiment", []byte(text("jump-label.experiment")))
	if err != nil {
		t.Fatal(err)
	}
	columns, _, err := form.Bind[pairOf](f.Named("fit").Columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := columns.Fill("fit", []pairOf{p})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for name, v := range form.RowsOf(table)[0] {
		out[name], _ = v.(float64)
	}
	return out
}

// TestJumpLabelFit: the two published times give a round of 337 us and 6.9 us an entry, and
// the handler 23.2 ns a level.
func TestJumpLabelFit(t *testing.T) {
	_, p, err := read("")
	if err != nil {
		t.Fatal(err)
	}
	f := fitOf(t, p)
	near := func(what string, got, want, within float64) {
		if math.Abs(got-want) > within {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("round", f["round_ns"], (57e6-1.4e6)/165, 1e-6)
	near("entry", f["entry_ns"], 6948, 1)
	near("low round", f["low_round_ns"], (56.5e6-1.45e6)/165, 1e-6)
	near("high round", f["high_round_ns"], (57.5e6-1.35e6)/165, 1e-6)
	if !(f["low_entry_ns"] < f["entry_ns"] && f["entry_ns"] < f["high_entry_ns"]) {
		t.Errorf("%v is not between its ends", f["entry_ns"])
	}
	near("level", f["level_ns"], 135/5.807, 0.01)
	// A binary search among 56 finds one entry at the first comparison, two at the
	// second, and so on; the last 25 at the sixth.
	mean := float64(1*1+2*2+4*3+8*4+16*5+25*6) / 56
	near("comparisons", stepsOf(56).Mean, mean, 1e-12)
	near("comparison", f["mean_ns"], 135/(mean-1), 1e-9)
	r := trial.Must(t, JumpLabel, "--entries", "1,56", "--repeat", "1")
	for i, line := range strings.Split(strings.TrimSpace(string(r.Document(t, "handlers.csv"))), "\n")[1:] {
		for _, cell := range strings.Split(line, ",")[4:8] {
			got, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			near("handler", got, []float64{45, 180}[i], 1e-9)
		}
	}
}

// TestJumpLabelSolve: whatever made two times is found again.
func TestJumpLabelSolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		round, entry := rapid.Float64Range(1e3, 1e6).Draw(t, "round"), rapid.Float64Range(10, 1e5).Draw(t, "entry")
		n := rapid.IntRange(2, 500).Draw(t, "entries")
		switched := func(rounds int) known {
			ms := (round*float64(rounds) + entry*float64(n)) / 1e6
			return known{published.KeyUpdate{Entries: int64(n), Rounds: int64(rounds), UpdateMS: published.Figure{Value: ms, Known: true}}}
		}
		f := fitOf(t, pairOf{Slow: switched(3 * n), Fast: switched(3)})
		if math.Abs(f["round_ns"]/round-1) > 1e-9 || math.Abs(f["entry_ns"]-entry) > 1e-9*round {
			t.Fatalf("%v and %v, want %v and %v", f["round_ns"], f["entry_ns"], round, entry)
		}
	})
	for v, want := range map[float64]float64{57: 1, 1.4: 0.1, 0.25: 0.01, 120: 1} {
		if got := lastDigit(v); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: last digit %v, want %v", v, got, want)
		}
	}
}

// TestJumpLabelMachines: on another machine nothing was fitted, and no time is the published.
func TestJumpLabelMachines(t *testing.T) {
	r := trial.Must(t, JumpLabel, "--calibration", "refcount-480@4", "--entries", "56", "--repeat", "1", "--calls", "0")
	for i := range 2 {
		if r.Cell(t, i, "basis") != "prediction" || r.Cell(t, i, "traps") != "0" || r.Cell(t, i, "update_low_ns") != r.Cell(t,
			i, "update_ns") {
			t.Errorf("%v", r.Table.Rows[i])
		}
	}
}

// TestJumpLabelDiffer: a row whose rounds are not the formula's makes the answer no.
func TestJumpLabelDiffer(t *testing.T) {
	f, err := experiments.ParseForm("jump-label.experiment", []byte(text("jump-label.experiment")))
	if err != nil || len(f.Must) != 1 {
		t.Fatal(err)
	}
	want := (&keyRow{way: ways[0], Entries: 4}).WantRounds()
	for rounds, right := range map[int]bool{11: false, 12: true} {
		if ok, err := f.Must[0].Holds.Holds(form.Row{"rounds": rounds, "want_rounds": want}); ok != right || err != nil {
			t.Errorf("%d rounds, want %d: %v, %v", rounds, want, ok, err)
		}
	}
}

// TestJumpLabelFigure: the picture that docs show is what comes out with the defaults.
func TestJumpLabelFigure(t *testing.T) {
	if !*long {
		t.Skip("slow: -long runs it")
	}
	trial.Must(t, JumpLabel).Figure(t)
}

func TestJumpLabelCut(t *testing.T) { trial.CutShort(t, JumpLabel, fewJumpLabel...) }

func TestJumpLabelWrong(t *testing.T) {
	header := "measurement,entries,rounds,update_ms,int3_handler_ns,machine,source\n"
	file := filepath.Join(t.TempDir(), "published.csv")
	if err := os.WriteFile(file, []byte(header+"one,56,168,57,45,,mail\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][2]string{
		{"--repeat=0", "want whole numbers from 1"},
		{"--entries=0", "want whole numbers from 1"},
		{"--published=" + file, "want update_ms and int3_handler_ns of one key, switched one entry by one and in one batch"},
		{"--published=nosuch", "no such file"},
	} {
		if r := trial.Run(t, JumpLabel, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v, want %s", tt[0], r.Err, tt[1])
		}
	}
}
