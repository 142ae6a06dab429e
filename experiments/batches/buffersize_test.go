// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// few is the experiment with so few records that it is quick.
var fewBufferSize = []string{"--records", "gen:n=2000,order=sorted", "--calibration", "jump-label-24,refcount-480@64"}

// TestBufferSizeCounts holds rounds and memory against formulas, and times against the
// plan's parts added up.
func TestBufferSizeCounts(t *testing.T) {
	r := trial.Must(t, BufferSize, fewBufferSize...)
	const n, sizes = 2000, 12
	if len(r.Table.Rows) != 2*sizes {
		t.Fatalf("%d rows, want %d", len(r.Table.Rows), 2*sizes)
	}
	for i := range r.Table.Rows {
		cell := func(column string) float64 { return r.Number(t, i, column) }
		slots, err := strconv.Atoi(r.Cell(t, i, "buffer"))
		if err != nil {
			slots = n
		}
		batches := float64((n + slots - 1) / slots)
		if cell("rounds") != 3*batches || cell("ipis_per_cpu") != 3*batches || cell("patches") != n ||
			cell("flushes") != batches {
			t.Errorf("%v: want %v batches", r.Table.Rows[i], batches)
		}
		entry := map[int]float64{128: 32, 170: 24}[slots]
		if entry == 0 {
			entry = 16
		}
		if want := float64(slots) * entry; cell("buffer_bytes") != want {
			t.Errorf("%d slots: %v bytes, want %v", slots, cell("buffer_bytes"), want)
		}
		update, formula := cell("update_ns"), cell("update_formula_ns")
		// The mean of so many rounds, each with its own exponential delays.
		if off := math.Abs(update/formula - 1); off > 0.005+0.5/math.Sqrt(3*batches)*cell("rounds_share") {
			t.Errorf("%v slots: %v ns, the formula gives %v", slots, update, formula)
		}
		if i%sizes > 0 && (cell("exposure_ns") < r.Number(t, i-1, "exposure_ns") || cell("rounds_share") > r.Number(t, i-1,
			"rounds_share")) {
			t.Errorf("%v: a bigger vector holds breakpoints longer, and rounds have less of it", r.Table.Rows[i])
		}
		checkTrap(t, r, i, slots)
	}
	trial.Golden(t, "buffer-size.md", r.Document(t, "report.md"))
	for _, picture := range []string{"", "-front", "-stolen", "-burst", "-crossover"} {
		if svg := string(r.Document(t, "buffer-size"+picture+".svg")); !strings.Contains(svg, "jump-label-24") ||
			!strings.Contains(svg, "odelled") {
			t.Errorf("%s: names neither calibration nor that it is modelled", picture)
		}
	}
}

// TestBufferSizeFormulas: the plan's parts are those of each instruction set; with nothing
// random they would add up exactly.
func TestBufferSizeFormulas(t *testing.T) {
	r := trial.Must(t, BufferSize, "--records", "gen:n=800,order=sorted", "--calibration", "graviton2@4,sg2042@4,vm-2@4",
		"--buffer", "1,16,dynamic", "--calls", "0")
	for i := range r.Table.Rows {
		update, formula := r.Number(t, i, "update_ns"), r.Number(t, i, "update_formula_ns")
		if off := math.Abs(update/formula - 1); off > 0.02 {
			t.Errorf("%v: %v ns, the formula gives %v", r.Table.Rows[i], update, formula)
		}
	}
}

// checkTrap: a trap is the way in and out, two references, and between one
// comparison and the most that a binary search of the batch makes.
func checkTrap(t *testing.T, r *trial.Result, i, slots int) {
	t.Helper()
	if r.Cell(t, i, "traps") == "0" {
		return
	}
	k, err := calibration.Open(r.Cell(t, i, "calibration"))
	if err != nil {
		t.Fatal(err)
	}
	c := &k.Costs
	always := c.TrapEntry + c.TrapExit + 2*c.Reference
	mean, most := r.Number(t, i, "trap_mean_ns"), always+c.Comparison*float64(bits.Len(uint(slots)))
	if mean < always+c.Comparison-3 || mean > most+3 { // each step is rounded to a nanosecond
		t.Errorf("%d slots: %v ns a trap, want %v to %v", slots, mean, always+c.Comparison, most)
	}
	if sum := mean * r.Number(t, i, "traps"); math.Abs(sum/r.Number(t, i, "trap_time_ns")-1) > 1e-9 {
		t.Errorf("%d slots: %v ns in all traps", slots, sum)
	}
}

// TestBufferSizeFit: what two parts are made of is found again from times alone; one size says nothing.
func TestBufferSizeFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := split{rapid.Float64Range(10, 1e4).Draw(t, "site"), rapid.Float64Range(1e3, 1e7).Draw(t, "batch")}
		sites := 70 * rapid.IntRange(1, 10_000).Draw(t, "slots")
		var rows form.Rows
		for _, batches := range []int{1, 7, 70} {
			rows = append(rows, fake(sites, batches, s.Site*float64(sites)+s.Batch*float64(batches)))
		}
		if f := fitted(rows); f == nil || math.Abs(f.Site/s.Site-1) > 1e-3 || math.Abs(f.Batch/s.Batch-1) > 1e-3 {
			t.Fatalf("fitted %v, want %v", f, s)
		}
	})
	if fitted(form.Rows{fake(10, 1, 100), fake(10, 1, 101)}) != nil {
		t.Error("fitted to one size")
	}
}

// fake is a row of so many patches in so many batches.
func fake(patches, batches int, update float64) form.Row {
	return form.Row{"patches": int64(patches), "flushes": int64(batches), "update_ns": int64(math.Round(update))}
}

// TestBufferSizeFront: nothing dominates what is on a front, and what is off it is dominated
// by what it names, which is on it.
func TestBufferSizeFront(t *testing.T) {
	f, err := experiments.ParseForm("buffer-size.experiment", []byte(text("buffer-size.experiment")))
	if err != nil {
		t.Fatal(err)
	}
	columns := slices.DeleteFunc(f.Columns, func(c form.Column) bool {
		return !strings.HasPrefix(c.Name, "front") && !strings.HasPrefix(c.Name, "dominated")
	})
	if len(columns) != 6 {
		t.Fatalf("%d columns", len(columns))
	}
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(0, 3)
		var rows form.Rows
		for i := range rapid.IntRange(1, 8).Draw(t, "rows") {
			r := form.Row{"machine": "m" + strconv.Itoa(small.Draw(t, "machine")/3), "buffer": strconv.Itoa(i + 1), "timed": small.Draw(t, "timed") > 0}
			for _, cost := range []string{"ipis_per_cpu", "exposure_ns", "buffer_bytes", "update_ns", "stolen_mean_ns"} {
				r[cost] = int64(small.Draw(t, cost))
			}
			rows = append(rows, r)
		}
		if err := form.Finish(columns, rows, func(string) form.Rows { return rows }); err != nil {
			t.Fatal(err)
		}
		for column, first := range map[string]string{"dominated_by": "ipis_per_cpu", "dominated_update_by": "update_ns", "dominated_stolen_by": "stolen_mean_ns"} {
			beats := func(a, b form.Row) bool {
				better := false
				for _, cost := range []string{first, "exposure_ns", "buffer_bytes"} {
					x, y := a[cost].(int64), b[cost].(int64)
					if x > y {
						return false
					}
					better = better || x < y
				}
				return better && a["machine"] == b["machine"] && a["timed"] == true && b["timed"] == true
			}
			for _, r := range rows {
				by := spelling.Where(rows, func(q form.Row) bool { return beats(q, r) })
				named := spelling.First(by, func(q form.Row) bool { return q["buffer"] == r[column] })
				switch got := r[column]; {
				case len(by) == 0 && got != nil:
					t.Fatalf("%v: %s %v, and nothing is better", r, column, got)
				case len(by) > 0 && (named == nil || named[column] != nil):
					t.Fatalf("%v: %s %v, which is not better or not on the front", r, column, got)
				}
			}
		}
	})
}

// TestBufferSizeNotTimed: what would take too many interrupts is counted all the same.
func TestBufferSizeNotTimed(t *testing.T) {
	r := trial.Must(t, BufferSize, "--records", "gen:n=500,order=sorted", "--calibration", "jump-label-24", "--cpus", "4",
		"--buffer", "1,100", "--limit-ipis", "1000", "--calls", "0")
	if r.Cell(t, 0, "rounds") != "1500" || r.Cell(t, 0, "update_ns") != "" || r.Cell(t, 0, "dominated_by") != "" ||
		r.Cell(t, 0, "update_formula_ns") == "" {
		t.Errorf("%v", r.Table.Rows[0])
	}
	if r.Cell(t, 1, "update_ns") == "" || r.Cell(t, 1, "traps") != "0" || r.Cell(t, 1, "trap_mean_ns") != "" ||
		r.Cell(t, 1, "burst_isolated_max") != "" {
		t.Errorf("%v", r.Table.Rows[1])
	}
	if report := string(r.Document(t, "report.md")); !strings.Contains(report,
		"sizes 1 were counted and not timed: more than 1,000 interrupts") || !strings.Contains(report, "CPUs 4, ") {
		t.Error(report)
	}
}

// TestBufferSizeFigure: the picture that docs show is what comes out with the defaults.
func TestBufferSizeFigure(t *testing.T) {
	if !*long {
		t.Skip("slow: -long runs it")
	}
	trial.Must(t, BufferSize).Figure(t)
}

func TestBufferSizeCut(t *testing.T) { trial.CutShort(t, BufferSize, fewBufferSize...) }

func TestBufferSizeWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--calibration=nosuch", `calibration "nosuch": no such file`},
		{"--calibration=vm-2@0", "vm-2@0: want 1 to 8192 CPUs behind the @"},
		{"--calibration=jump-lable-24", "did you mean jump-label-24"},
		{"--calls=-1", "want a number a second, from 0"},
		{"--calls=NaN", "want a number a second, from 0"},
		{"--records=arm64-6.12", "records arm64-6.12 are of arm64, not of x86_64"},
	} {
		if r := trial.Run(t, BufferSize, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v, want %s", tt[0], fmt.Sprint(r.Err), tt[1])
		}
	}
}
