// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// near tells whether a count is what a binomial law of n and p gives, but for once in
// thousands of times. draws of them are independent. What the law
// leaves out, that an interrupt takes a moment to arrive in which a CPU may leave the
// kernel, is within a hundredth; without such moments the engine is held to the law
// itself (package sim).
func near(got, p, n, draws float64) bool {
	return math.Abs(got/n-p) <= 4*math.Sqrt(p*(1-p)/draws)+p/100+1/n
}

// check holds every row against what follows from the request: each CPU takes every
// round, or is left out of it; as many rounds find it in the kernel as it is there;
// catch-ups make up for three rounds, or more where the next update comes first.
func check(t *testing.T, r *trial.Result, hours, isolated float64) {
	t.Helper()
	for i := range r.Table.Rows {
		num := func(column string) float64 { return r.Number(t, i, column) }
		updates := math.Round(num("updates_per_hour") * hours)
		rounds := 3 * updates
		if num("updates") != updates || num("rounds") != rounds {
			t.Errorf("row %d: %v updates, %v rounds, want %v and %v", i, num("updates"), num("rounds"), updates, rounds)
		}
		all := rounds * isolated
		if r.Cell(t, i, "protocol") == "breakpoint" {
			handler := 1000.0 // of these calibrations
			if num("ipis_isolated") != all || num("ipis_isolated_max") != rounds || r.Cell(t, i, "deferred") != "" {
				t.Errorf("row %d: %v interrupts, want %v", i, num("ipis_isolated"), all)
			}
			if got, want := num("stolen_ns_per_hour"), rounds*handler/hours; math.Abs(got/want-1) > 0.02 {
				t.Errorf("row %d: %v ns stolen in an hour, want %v", i, got, want)
			}
			continue
		}
		entries := num("entries_per_s")
		stays := entries * 5000 / 1e9
		if num("ipis_isolated")+num("deferred") != all {
			t.Errorf("row %d: %v taken and %v deferred of %v", i, num("ipis_isolated"), num("deferred"), all)
		}
		if !near(num("ipis_isolated"), stays/(1+stays), all, all/3) {
			t.Errorf("row %d: %v of %v rounds found a CPU in the kernel, want a share of %v", i, num("ipis_isolated"), all,
				stays/(1+stays))
		}
		if r.Cell(t, i, "catch_ups") == "0" {
			continue
		}
		// An entry comes before the next update with probability entries/(entries+updates).
		if want := 3 * (1 + num("updates_per_hour")/3600/entries); entries <= 100 &&
			math.Abs(num("rounds_per_catch_up")/want-1) > 0.1 {
			t.Errorf("row %d: a catch-up makes up for %v rounds, want %.2f", i, num("rounds_per_catch_up"), want)
		}
		if want := entries * 3600 * 570; math.Abs(num("entries_ns_per_hour")/want-1) > 1e-9 &&
			r.Cell(t, i, "calibration") == "e5-2699" {
			t.Errorf("row %d: dearer entries cost %v, want %v", i, num("entries_ns_per_hour"), want)
		}
	}
}

func TestFormulas(t *testing.T) {
	check(t, trial.Must(t, Experiment, "--calibration", "e5-2699", "--updates", "60", "--hours", "2"), 2, 27)
	check(t, trial.Must(t, Experiment, "--calibration", "gold-6248@9", "--updates", "300", "--hours", "1", "--isolated",
		"8", "--entries", "1,1e5", "--sites", "1"), 1, 8)
	if *long {
		check(t, trial.Must(t, Experiment, "--calibration", "e5-2699", "--updates", "200", "--hours", "20"), 20, 27)
	}
}

// TestReport: the published case.
func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment, "--updates", "1")
	check(t, r, 6, 27)
	report := string(r.Document(t, "report.md"))
	trial.Golden(t, "report.md", []byte(report))
	// 200 interrupts in 6 h are 66.7 updates, which are rounded: 67 x 3 x 27.
	for _, want := range []string{
		"deferral leaves 0 of 5,427 interrupts of isolated CPUs in 6 h",
		"| IPIs in 6 h, with deferral (here: 10 entries a second) | 0 | 0 | 0 |",
		"| getpid on NOHZ_FULL CPU, E5-2699, after, ns | 1340 | 1340 | +0.0 % |",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	r.Figure(t)
}

// TestSame: the same seed gives the same hours, another one others.
func TestSame(t *testing.T) {
	args := []string{"--calibration", "e5-2699", "--hours", "1", "--entries", "1e4"}
	one, two := trial.Must(t, Experiment, args...), trial.Must(t, Experiment, args...)
	for i := range one.Table.Rows {
		for _, c := range one.Table.Columns {
			if a, b := one.Cell(t, i, c.Name), two.Cell(t, i, c.Name); a != b {
				t.Errorf("row %d: %s is %s and %s", i, c.Name, a, b)
			}
		}
	}
}

const header = "measurement,value,unit,source\n"

// TestOthers: other figures give another rate and another machine.
func TestOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.csv")
	put := func(rows string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(header+rows), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(
		"\"IPIs in 6 h, all isolated CPUs, without deferral\",180,count,me\n\"IPIs in 6 h, per isolated CPU, without " +
			"deferral\",36,count,me\n",
	)
	r := trial.Must(t, Experiment, "--published", file, "--calibration", "e5-2699", "--entries", "10")
	if r.Cell(t, 2, "updates_per_hour") != "2" || r.Cell(t, 2, "ipis_isolated") != "180" ||
		r.Cell(t, 2, "cpus") != "busy=39,isolated=5" {
		t.Errorf("%v", r.Table.Rows[2])
	}
	put("\"IPIs in 6 h, per isolated CPU, without deferral\",36,count,me\n")
	if r := trial.Run(t, Experiment, "--published", file); r.Err == nil || !strings.Contains(r.Err.Error(),
		"rates and machines follow only from") {
		t.Error(r.Err)
	}
}

func TestWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--hours=0", "want numbers above 0, to 8760"}, {"--hours=NaN", "want numbers above 0, to 8760"}, {"--hours=9000", "want numbers above 0, to 8760"},
		{"--isolated=-1", "want whole numbers from 0"}, {"--isolated=44", "e5-2699 has 44 CPUs"},
		{"--sites=0", "want whole numbers from 1 to 256"}, {"--sites=257",
			"want whole numbers from 1 to 256"}, {"--updates=1e8", "want 1 to 100000"}, {"--updates=0", "want 1 to 100000"},
		{"--entries=-1", "want a number from 0"}, {"--calibration=e5", "e5-2699"}, {"--published=nosuch.csv", "nosuch.csv"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
	trial.CutShort(t, Experiment)
}
