// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/budget"
)

func mustBudget(t *testing.T, text string) Budget {
	t.Helper()
	b, err := Limits.Parse(strings.Split(text, ","))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// budgetRow is a row of which every figure is another.
func budgetRow(t *testing.T) *RunRow {
	t.Helper()
	c := config(t, "x86_64", poke.Native, "gen:n=5", "busy=2,isolated=1")
	return &RunRow{
		PlanRow: PlanRow{Config: &c, IPIsPerCPU: 12}, Engine: "live", HasIsolated: true, IsolatedMax: 9,
		Burst: 6, Traps: 1 << 40, Lost: 1, Elapsed: 10*time.Millisecond + 1,
	}
}

func exceeded(t *testing.T, text string, row *RunRow) ([]budget.Excess, error) {
	t.Helper()
	table, err := RunColumns.Fill("run", []*RunRow{row})
	if err != nil {
		t.Fatal(err)
	}
	return mustBudget(t, text).Exceeded(table.Columns, table.Rows[0])
}

// TestBudget holds a row against limits just below, at and above what it has.
func TestBudget(t *testing.T) {
	row := budgetRow(t)
	for text, want := range map[string]string{
		"isolated=8":               "isolated 9, 1 over the budget of 8",
		"isolated=9":               "",
		"isolated=0":               "isolated 9, 9 over the budget of 0",
		"burst=5/ms":               "burst 6/ms, 1/ms over the budget of 5/ms",
		"burst=6/ms":               "",
		"ipis=11":                  "ipis 12, 1 over the budget of 11",
		"ipis=12":                  "",
		"traps=1099511627775":      "traps 1099511627776, 1 over the budget of 1099511627775",
		"traps=1099511627776":      "",
		"lost=0":                   "lost 1, 1 over the budget of 0",
		"lost=1":                   "",
		"update=10ms":              "update 10.000001ms, 1ns over the budget of 10ms",
		"update=10000001ns":        "",
		"ipis=1,lost=1,burst=5/ms": "ipis 12, 11 over the budget of 1; burst 6/ms, 1/ms over the budget of 5/ms",
	} {
		excess, err := exceeded(t, text, row)
		if got := budget.Say(excess); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestBudgetOnWhatNobodyKnows(t *testing.T) {
	row := budgetRow(t)
	row.HasIsolated = false
	if _, err := exceeded(t, "isolated=5", row); err == nil || !strings.Contains(err.Error(),
		"budget isolated=5: cannot be judged: ipis_isolated_max is empty, as this engine does not count the interrupts that "+
			"an isolated CPU takes") {
		t.Errorf("without isolated CPUs: %v", err)
	}
	none := config(t, "x86_64", poke.Native, "gen:n=5", "2")
	for _, c := range []struct {
		budget string
		table  results.Table
		config *Config
		want   string
	}{
		{"isolated=0", RunColumns.Table("run"), row.Config, ""},
		{"isolated=0", RunColumns.Table("run"), &none, "no CPU is isolated in"},
		{"ipis=3", PlanColumns.Table("plan"), row.Config, ""},
		{"ipis=3,traps=5", PlanColumns.Table("plan"), row.Config, "budget traps=5: plan does not tell the breakpoints"},
		{"update=5ms", PlanColumns.Table("plan"), row.Config,
			"budget update=5ms: plan does not tell the time that an update takes"},
	} {
		err := mustBudget(t, c.budget).Check(c.table, c.config)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s: %v, want %q", c.budget, c.table.Name, err, c.want)
		}
	}
}

// TestBudgetColumns: what a limit is about is a column somewhere, or will be.
func TestBudgetColumns(t *testing.T) {
	columns := map[string]bool{"update_ns": true, "stolen_max_ns": true} // of the timed engine
	for _, c := range RunColumns.Table("run").Columns {
		columns[c.Name] = true
	}
	for _, m := range Limits {
		for _, c := range m.Columns {
			if !columns[c] {
				t.Errorf("%s is about %s, which is no column", m.Name, c)
			}
			if m.Time != strings.HasSuffix(c, "_ns") {
				t.Errorf("%s is a time, or %s is; not both", m.Name, c)
			}
		}
	}
}

// TestBudgetTakesTheFirst: modelled times come before those of this machine.
func TestBudgetTakesTheFirst(t *testing.T) {
	columns := []results.Column{{Name: "elapsed_ns"}, {Name: "update_ns"}}
	for want, row := range map[float64][]results.Value{
		7:   {results.Int(3), results.Int(7)},
		3:   {results.Int(3), results.Empty},
		2.5: {results.Int(3), results.Float(2.5)},
	} {
		excess, err := mustBudget(t, "update=1ns").Exceeded(columns, row)
		if err != nil || len(excess) != 1 || excess[0].Got != want {
			t.Errorf("%v: %v, %v", row, excess, err)
		}
	}
}

func TestParseBudget(t *testing.T) {
	for _, text := range []string{"isolated=0,burst=5/ms,ipis=100,stolen=2ms,traps=7,lost=0,update=10ms", "update=1h30m0s",
		"stolen=0s"} {
		var again []string
		for _, l := range mustBudget(t, text) {
			again = append(again, l.String())
		}
		if got := strings.Join(again, ","); got != text {
			t.Errorf("%s is read as %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"isolatd=0": `budget "isolatd=0": not one of isolated, burst, ipis, traps, lost, update, stolen; did you mean isolated?`,
		"":          "not one of", "=": "not one of", "ipis": `budget "ipis": want a whole number from 0, such as ipis=5`,
		"ipis=": "want a whole number", "ipis=-1": "want a whole number", "ipis=1.5": "want a whole " +
			"number", "ipis=5/ms": "want a whole number",
		"ipis=99999999999999999999": "want a whole number", "ipis=9007199254740993": "want a whole number",
		"burst=5": "such as burst=5/ms", "burst=5/s": "such as burst=5/ms", "burst=/ms": "such as burst=5/ms",
		"update=5": "want a time with its unit, such as " +
			"update=2ms", "update=-5ms": "want a time", "update=NaN": "want a time",
		"ipis=1,ipis=2": `budget "ipis=2": ipis is limited twice`,
	} {
		if b, err := Limits.Parse(strings.Split(text, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, b, err, want)
		}
	}
	if _, err := Limits.Parse(nil); err == nil {
		t.Error("a budget of nothing")
	}
}
