// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// answer compares everything that comes with the program.
func answer(t *testing.T) *Answer {
	t.Helper()
	measured, err := ledger.Measurements()
	if err != nil {
		t.Fatal(err)
	}
	a, err := Compare(t.Context(), measured)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Rows) != len(measured) || len(measured) != 16880 {
		t.Fatalf("%d measurements, %d rows, want 16880", len(measured), len(a.Rows))
	}
	return a
}

// clean is what a receiver takes that takes nothing else, written down by hand
// from the call stacks of each kernel and not from its ledger: n functions in
// batches of 256.
var clean = map[string]map[string]func(n int, enable, graph bool) int{
	"x86_64-6.12": {"CAL": func(n int, enable, graph bool) int {
		sum := 3*((n+255)/256) + 33 + 6 + 6 + 1
		if enable {
			sum += 3
		}
		if graph {
			sum += 6 + 12
		}
		return sum
	}},
	"arm64-6.12": {"IPI1": func(int, bool, bool) int { return 3 + 1 }},
	"riscv64-7.2": {
		"FW_FENCE_I_RECVD": func(n int, _, _ bool) int { return n + 1 + 3 },
		"IPI1":             func(int, bool, bool) int { return 1 },
	},
	"riscv64-6.12": {
		"FW_FENCE_I_RECVD": func(int, bool, bool) int { return 3 },
		"IPI0":             func(int, bool, bool) int { return 1 },
		"IPI1":             func(int, bool, bool) int { return 0 },
	},
}

// TestModel: the ledgers come to what was written down by hand, and batches to
// the number of functions divided up, on every kernel and for every toggle. (In
// these tables no order break makes a batch more.)
func TestModel(t *testing.T) {
	seen := map[string]bool{}
	a := answer(t)
	for i := range a.Summaries {
		s := &a.Summaries[i]
		formula := clean[s.Kernel.Name()][s.Row]
		if formula == nil {
			t.Fatalf("%s: row %s is modelled, and not here", s.Kernel.Name(), s.Row)
		}
		seen[s.Kernel.Name()+s.Row] = true
		want := 0
		if s.Load.Switches() {
			want = formula(s.Functions, strings.HasSuffix(s.Scenario, "_enable"), s.Load == ledger.Graph)
		}
		if s.Model != want {
			t.Errorf("%s %s %d %s: model %d, want %d", s.Kernel.Name(), s.Scenario, s.Functions, s.Row, s.Model, want)
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d rows were seen, want 7", len(seen))
	}
}

// aside are the toggles whose clean value is not the model's although there are
// several receivers, row IPI1 of riscv64-6.12 aside, which is TestIdleToo's.
var aside = map[string]float64{
	"arm64-6.12 4 graph_enable 48048 IPI1": 3,
}

// TestExactly: where there is a receiver that takes nothing else, what it takes
// is the ledger and the rounds of the records, exactly. What one receiver takes
// alone is never less.
func TestExactly(t *testing.T) {
	a, found, exact := answer(t), 0, 0
	for i := range a.Summaries {
		s := &a.Summaries[i]
		name := fmt.Sprintf("%s %d %s %d %s", s.Kernel.Name(), s.CPUs, s.Scenario, s.Functions, s.Row)
		beyond, listed := aside[name]
		entries, records := 0, s.Records
		if s.Load.Switches() {
			list, err := s.Kernel.Ledger(s.Load.Scenario(), strings.HasSuffix(s.Scenario, "_enable"), nil)
			if err != nil {
				t.Fatal(err)
			}
			entries = ledger.LedgerRounds(list)[s.Row]
		}
		switch left := s.Quietest - float64(entries); {
		case !s.Load.Switches():
		case s.Kernel.Name()+s.Row == "riscv64-6.12IPI1":
		case listed:
			found++
			if s.Difference() != beyond || s.Why == "" {
				t.Errorf("%s: %g beyond the model, listed with %g; %q", name, s.Difference(), beyond, s.Why)
			}
		case s.Receivers == 1 && s.Row != "FW_FENCE_I_RECVD":
			if left < float64(records) {
				t.Errorf("%s: the only receiver took %g, less than the model's %d", name, s.Quietest, s.Model)
			}
		default:
			exact++
			if left != float64(records) || s.Why != "" {
				t.Errorf("%s: %g without the ledger, and the records' rounds are %d; %q", name, left, records, s.Why)
			}
		}
	}
	// x86_64 with 4 CPUs 44, arm64 43, riscv64-6.12 44 in each of two rows, riscv64-7.2 42.
	if found != len(aside) || exact != 44+43+2*44+42 {
		t.Errorf("%d toggles of the list, %d exact ones", found, exact)
	}
}

// TestIdleToo: what nothing models in row IPI1 of riscv64-6.12 is there in a
// second in which nothing is switched as well: 6, and 7 in two toggles.
func TestIdleToo(t *testing.T) {
	a := answer(t)
	var odd []string
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if s.Kernel.Name() != "riscv64-6.12" || s.Row != "IPI1" {
			continue
		}
		switch s.Quietest {
		case 6:
		case 7:
			odd = append(odd, fmt.Sprint(s.Scenario, " ", s.Functions))
		default:
			t.Errorf("%s %d: %g", s.Scenario, s.Functions, s.Quietest)
		}
	}
	if want := []string{"k_first_disable 10000", "graph_enable 37830"}; !sameSet(odd, want) {
		t.Errorf("7 in %q, want %q", odd, want)
	}
}

// TestFewer: readings below the model are two, each by one interrupt.
func TestFewer(t *testing.T) {
	a := answer(t)
	var fewer []string
	for i := range a.Rows {
		if r := &a.Rows[i]; r.Modelled && r.Difference() < 0 {
			fewer = append(fewer, fmt.Sprintf("%s %s %d, CPU %d: %d", r.Kernel.Name(), r.Scenario, r.Functions, r.CPU,
				r.Difference()))
			if r.Why != sharedInterrupt {
				t.Errorf("%s: %q", fewer[len(fewer)-1], r.Why)
			}
		}
	}
	want := []string{"x86_64-6.12 graph_enable 42757, CPU 2: -1", "x86_64-6.12 k_first_disable 257, CPU 2: -1"}
	if !sameSet(fewer, want) {
		t.Errorf("%q, want %q", fewer, want)
	}
}

// TestPatcher: a patcher takes no round of its own, but where firmware counts the
// asking hart too, which then takes what every other does.
func TestPatcher(t *testing.T) {
	a := answer(t)
	checked := 0
	for i := range a.Rows {
		r := &a.Rows[i]
		if !r.Patcher || !r.Modelled {
			continue
		}
		if firmware := r.Measured.Row == "FW_FENCE_I_RECVD"; firmware {
			checked++
			if r.Delta != r.Model || r.Load.Switches() != (r.Model > 0) {
				t.Errorf("%s %s: %d, model %d", r.Kernel.Name(), r.Scenario, r.Delta, r.Model)
			}
		} else if r.Model != 0 {
			t.Errorf("%s %s %s: the patcher takes %d of its own", r.Kernel.Name(), r.Scenario, r.Measured.Row, r.Model)
		}
	}
	if checked != 172+128 {
		t.Errorf("%d readings of firmware", checked)
	}
}

// TestWhy: a row says why it differs, and only then.
func TestWhy(t *testing.T) {
	a := answer(t)
	for i := range a.Rows {
		r := &a.Rows[i]
		if agrees := r.Modelled && r.Difference() == 0; agrees != (r.Why == "") {
			t.Fatalf("row %d: agrees %v, and says %q", i, agrees, r.Why)
		}
		if !r.Modelled && r.Model != 0 {
			t.Fatalf("row %d: a model of what nothing models", i)
		}
	}
}

// TestTablesFit: tables that do not hold what was patched are refused.
func TestTablesFit(t *testing.T) {
	x86, err := ledger.Named("x86_64-6.12")
	if err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]ledger.Measured{
		"42756 functions: of table x86_64-6.12 it would be 42757": {Scenario: "function_enable", Load: ledger.Function,
			Functions: 42756},
		"99999 functions: table x86_64-6.12 has 42757": {Scenario: "k_first_enable", Load: ledger.First,
			Functions: 99999},
		"5 functions: of table x86_64-6.12-modules it would be 1687": {Scenario: "mod_shuffled_only_enable",
			Load: ledger.ModulesOnly, Functions: 5},
	} {
		m.Kernel, m.Row = x86, "CAL"
		if _, err := Compare(t.Context(), []ledger.Measured{m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestTables: every row is in its table, what does not apply is empty, and the report
// is made of them.
func TestTables(t *testing.T) {
	a := answer(t)
	r := trial.Must(t, Experiment)
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	if n := strings.Count(string(r.Document(t, "summary.csv")), "\n"); len(r.Table.Rows) != len(a.Rows) ||
		n != 1+len(a.Summaries) {
		t.Errorf("%d rows, %d lines of summary", len(r.Table.Rows), n)
	}
	for i := range r.Table.Rows {
		if empty := r.Cell(t, i, "model") == ""; empty == a.Rows[i].Modelled {
			t.Fatalf("row %d: model empty %v", i, empty)
		}
	}
}

// TestStatistics: of three receivers with a few repetitions, worked out by hand; and the quietest receiver
// agrees most often, since background only adds.
func TestStatistics(t *testing.T) {
	if m := mode([]int{5, 3, 5, 3, 9}); m != 3 {
		t.Errorf("mode %d, want the smaller of two", m)
	}
	if m := mode([]int{7, 9, 9}); m != 9 {
		t.Errorf("mode %d", m)
	}
	var asked, quietest, median, most int
	for _, s := range answer(t).Summaries {
		if !s.Load.Switches() || !s.Quiet {
			continue
		}
		asked++
		model := float64(s.Model)
		for n, of := range map[*int]float64{&quietest: s.Quietest, &median: s.Median, &most: float64(s.Mode)} {
			if of == model {
				*n++
			}
		}
	}
	if asked == 0 || median > quietest || most > quietest {
		t.Errorf("of %d, the quietest receiver agrees in %d, the median in %d, the mode in %d", asked, quietest, median, most)
	}
}
