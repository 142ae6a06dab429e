// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timed"
)

// few is the experiment with so few records that it is quick.
var fewPareto = []string{"--records", "gen:n=2000,order=sorted", "--calibration", "jump-label-24,graviton2,sg2042@8",
	"--buffer", "16,170,256,1024,dynamic"}

// TestParetoChoices: what is chosen keeps to its budget, what would be cheaper does not,
// and a bigger budget costs no more.
func TestParetoChoices(t *testing.T) {
	r := trial.Must(t, Pareto, fewPareto...)
	if len(r.Table.Rows) != 3*6 {
		t.Fatalf("%d rows, want 3 machines with 6 budgets", len(r.Table.Rows))
	}
	for i := range r.Table.Rows {
		cell := func(column string) string { return r.Cell(t, i, column) }
		number := func(column string) float64 {
			v, err := strconv.ParseFloat(cell(column), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		budget := number("budget_per_ms")
		if number("taken_per_ms") > budget || cell("cheaper_per_ms") != "" && number("cheaper_per_ms") <= budget {
			t.Errorf("%v", r.Table.Rows[i])
		}
		switch cell("calibration") {
		case "graviton2": // changes single words, and asks nobody
			if cell("protocol") != "native" || cell("rounds") != "0" || cell("buffer") != "" || cell("cheaper_buffer") != "" ||
				cell("exposure_ns") != "" {
				t.Errorf("%v", r.Table.Rows[i])
			}
		case "jump-label-24":
			slots, err := strconv.Atoi(cell("buffer"))
			if err != nil {
				slots = 2000
			}
			if want := 3 * ((2000 + slots - 1) / slots); number("rounds") != float64(want) ||
				number("buffer_pages") != float64((16*slots+4095)/4096) {
				t.Errorf("%v: want %d rounds", r.Table.Rows[i], want)
			}
			if deferred := cell("protocol") == "breakpoint-lazy"; deferred != (budget == 0) ||
				deferred != (number("entry_ns") > 0) || deferred && number("taken_per_ms") != 0 {
				t.Errorf("%v: deferral is for a budget of nothing", r.Table.Rows[i])
			}
		default: // riscv64: one round a site by itself, no vector
			if cell("protocol") == "native" && number("rounds") != 2001 {
				t.Errorf("%v", r.Table.Rows[i])
			}
		}
		if i%6 > 0 {
			if before, _ := strconv.ParseFloat(r.Cell(t, i-1, "entry_ns"), 64); before < number("entry_ns") {
				t.Errorf("%v: a bigger budget costs more", r.Table.Rows[i])
			}
		}
	}
	trial.Golden(t, "pareto.md", r.Document(t, "report.md"))
	if svg := string(r.Document(t, "pareto.svg")); !strings.Contains(svg, "jump-label-24") ||
		!strings.Contains(svg, "Modelled") {
		t.Error("the picture names neither calibration nor that it is modelled")
	}
}

// TestParetoBurst: the other measure is a number of interrupts.
func TestParetoBurst(t *testing.T) {
	r := trial.Must(t, Pareto, "--records", "gen:n=2000,order=sorted", "--calibration", "jump-label-24", "--cpus",
		"busy=3,isolated=1", "--buffer", "16,256,dynamic", "--measure", "burst", "--budget", "0.5,1,100", "--calls", "0")
	if got := r.Cell(t, 0, "protocol"); got != withDeferral {
		t.Errorf("half an interrupt: %s", got)
	}
	for i := 1; i < 3; i++ {
		if taken := r.Cell(t, i, "taken_per_ms"); strings.Contains(taken, ".") || taken == "0" ||
			r.Cell(t, i, "protocol") != withInterrupts {
			t.Errorf("%v", r.Table.Rows[i])
		}
	}
}

// TestParetoShort: an update that is over within a millisecond lets a CPU take what it
// takes, in a millisecond.
func TestParetoShort(t *testing.T) {
	r := trial.Must(t, Pareto, "--records", "gen:n=4,order=sorted", "--calibration", "gold-6248@2", "--buffer",
		"2,dynamic", "--budget", "6,3,2.9", "--calls", "0")
	// Both sizes take a page, so that the bigger one is always chosen: it is faster.
	for i, want := range [][2]string{{withInterrupts, "3"}, {withInterrupts, "3"}, {withDeferral, "0"}} {
		if r.Cell(t, i, "protocol") != want[0] || r.Cell(t, i, "taken_per_ms") != want[1] ||
			len(r.Cell(t, i, "update_ns")) > 6 {
			t.Errorf("%v, want %v", r.Table.Rows[i], want)
		}
	}
}

// TestParetoRows holds picks against going through all choices.
func TestParetoRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(0, 3)
		m := experiments.Machine{Calibration: calibration.Nearest("x86_64", 2), Online: 2}
		var all []*offer
		for i := range rapid.IntRange(1, 7).Draw(t, "choices") {
			c := &offer{Machine: m, number: i, Taken: float64(small.Draw(t, "taken")), Standing: float64(small.Draw(t, "standing"))}
			c.PlanRow = sim.PlanRow{Config: &sim.Config{Protocol: withInterrupts, Buffer: sched.Buffer{Slots: i + 1}},
				Buffered: true, BufferPages: small.Draw(t, "pages")}
			c.Modelled = &sim.Modelled{Update: timed.Nanos(small.Draw(t, "update"))}
			all = append(all, c)
		}
		counted := &offer{Machine: m, Update: modelled.Update{RunRow: sim.RunRow{PlanRow: all[0].PlanRow}}} // never chosen
		cheaper := func(a, b *offer) bool {
			return cmp.Or(cmp.Compare(a.Standing, b.Standing), cmp.Compare(a.BufferPages, b.BufferPages),
				cmp.Compare(a.Modelled.Update, b.Modelled.Update), cmp.Compare(a.number, b.number)) < 0
		}
		study := pareto.Study(budgets{}, experiments.Lab{})
		about := []float64{0, 0.5, 1, 2, 3}
		for _, budget := range about {
			if err := study.Add(&budgetRow{Machine: m, Budget: budget}); err != nil {
				t.Fatal(err)
			}
		}
		if err := experiments.Beside(study, "choices", append(slices.Clone(all), counted)); err != nil {
			t.Fatal(err)
		}
		a, err := pareto.Answer(study, study)
		if err != nil {
			t.Fatal(err)
		}
		for i, budget := range about {
			var want, nearest *offer
			for _, c := range all {
				if c.Taken <= budget && (want == nil || cheaper(c, want)) {
					want = c
				}
			}
			for _, c := range all {
				if (want == nil || cheaper(c, want)) && (nearest == nil || c.Taken < nearest.Taken) {
					nearest = c
				}
			}
			cell := func(name string) string {
				return a.Table.Rows[i][slices.IndexFunc(a.Table.Columns, func(c results.Column) bool { return c.Name == name })].String()
			}
			said := func(c *offer, of func(*offer) string) string {
				if c == nil {
					return ""
				}
				return of(c)
			}
			if got, want := cell("buffer"), said(want, func(c *offer) string { return c.Buffer.String() }); got != want {
				t.Fatalf("budget %v: %q, want %q", budget, got, want)
			}
			if got, want := cell("cheaper_per_ms"), said(nearest, func(c *offer) string { return fmt.Sprint(c.Taken) }); got != want {
				t.Fatalf("budget %v: the nearest takes %q, want %q", budget, got, want)
			}
		}
	})
}

// TestParetoFigure: the picture that docs show is what comes out with the defaults.
func TestParetoFigure(t *testing.T) {
	if !*long {
		t.Skip("slow: -long runs it")
	}
	trial.Must(t, Pareto).Figure(t)
}

func TestParetoCut(t *testing.T) { trial.CutShort(t, Pareto, fewPareto...) }

func TestParetoWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--budget=-1", "want a number from 0 to 1e9"},
		{"--budget=", "want a number from 0 to 1e9"},
		{"--measure=brust", "did you mean burst"},
		{"--cpus=4", "cpus 4: none is isolated: no budget can be exceeded"},
	} {
		if r := trial.Run(t, Pareto, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v, want %s", tt[0], r.Err, tt[1])
		}
	}
}
