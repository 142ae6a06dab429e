// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

// filtered is a job of 10 functions, fn0 to fn9, of which filters name some.
func filtered(t *testing.T, protocol, table string, filters ...string) (*Job, error) {
	t.Helper()
	c := config(t, "x86_64", protocol, table, "2")
	var err error
	if c.Filter, err = records.ParseFilter(filters); err != nil {
		t.Fatal(err)
	}
	return NewJob(c)
}

// TestWarningsInWords: one filter without a record is named, several are counted and the first five are named.
func TestWarningsInWords(t *testing.T) {
	for _, tt := range []struct {
		protocol string
		filters  []string
		want     []string
	}{
		{"native", []string{"fn1", "a"}, []string{`records gen:n=10: filter "a" matches no record`}},
		{"native", []string{"fn1", "a", "b", "c", "d", "e"},
			[]string{"records gen:n=10: 5 filters match no record: a, b, c, d, e"}},
		{"native", []string{"fn1", "a", "b", "c", "d", "e", "f"},
			[]string{"records gen:n=10: 6 filters match no record: a, b, c, d, e, ..."}},
		{"native", []string{"fn1"}, nil},
		{"word", []string{"fn1", "fn2"}, []string{"protocol word relies on one store replacing a whole site, and on x86_64 " +
			"that is not so for 2 of 2 sites: CPUs may fetch mixtures"}},
	} {
		j, err := filtered(t, tt.protocol, "gen:n=10", tt.filters...)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.Warnings(); !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	const nothing = "records gen:n=10: nothing to patch: the filter leaves no record that x86_64 can patch (0 refused " +
		"for their alignment)"
	_, err := filtered(t, "native", "gen:n=10", "a", "b")
	says(t, "no record", err, nothing+`: filter "a" matches no record`)
	j, err := filtered(t, "native", "gen:n=10", "fn1 !fn1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewLive(j)
	says(t, "an engine without a record", err, nothing)
}

// TestRefusedInWords: whole messages of what makes no job.
func TestRefusedInWords(t *testing.T) {
	c := config(t, "x86_64", "magic", "gen:n=4", "2")
	_, err := NewJob(c)
	says(t, "a protocol", err, `protocol "magic": not one of [`+strings.Join(poke.Names(), " ")+"]")
	c = config(t, "riscv64", "native", "arm64-6.12", "2")
	_, err = NewJob(c)
	says(t, "records", err, "records arm64-6.12 are of arm64, not of riscv64")
	c = timedConfig(t, "x86_64", "native", "gen:n=4", "2", plainCosts())
	c.Calibration.Arch = "arm64"
	_, err = NewTimed(newJob(t, c))
	says(t, "a calibration", err, "calibration test is of a machine of arm64, not of x86_64")
	c.Calibration = nil
	c.Protocol, c.Mutation = "breakpoint", "drop-sync-3"
	_, err = NewTimed(newJob(t, c))
	says(t, "a mutation", err,
		"mutation drop-sync-3 on the timed engine: without a calibration nothing is executed that it could break: name one")
}

// TestStatedPath: what CPUs do is told where the protocol's own file says it, and only there.
func TestStatedPath(t *testing.T) {
	c := config(t, "x86_64", "", "gen:n=4", "2")
	for _, file := range poke.ShippedPlans() {
		p, err := poke.ParseProtocol("a.plan", file.Text)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if file.Name == "breakpoint-lazy" {
			want = "site: fetch site; call\nhandler: take reference; look up; give back; sync; act\n" +
				"miss: look again; sync; go back\nentry: enter; catch up"
		}
		c.Plan = p
		if got := newJob(t, c).StatedPath(); got != want {
			t.Errorf("%s: %q, want %q", file.Name, got, want)
		}
	}
	c.Plan, c.Protocol = nil, "breakpoint-lazy"
	if got := newJob(t, c).StatedPath(); got != "" {
		t.Errorf("a built-in protocol states %q", got)
	}
}

// TestSwitchedRounds: rounds of both kinds are told of the update that enables everything.
func TestSwitchedRounds(t *testing.T) {
	for protocol, want := range map[string]int{"breakpoint": 6, "stop-machine": 0} {
		if got := newJob(t, config(t, "x86_64", protocol, "gen:n=300,order=sorted", "4")).Rounds(); got != want {
			t.Errorf("%s: %d rounds, want %d", protocol, got, want)
		}
	}
}

// TestAnswers: the answer of one row, of several, and of those that are missing.
func TestAnswers(t *testing.T) {
	limits, err := Limits.Parse([]string{"ipis=10"})
	if err != nil {
		t.Fatal(err)
	}
	columns := []results.Column{{Name: "ipis_per_cpu"}, {Name: "violations"}, {Name: "lost_calls"}}
	for _, tt := range []struct {
		ipis    []int64
		cut     bool
		unknown bool
		want    string
		no      bool
	}{
		{[]int64{10}, false, false, "YES: within the budget; OK: 0 violations, 0 lost calls in 1 row", false},
		{[]int64{11}, false, false, "NO: over the budget; OK: 0 violations, 0 lost calls in 1 row", true},
		{[]int64{11, 12, 3}, false, false, "NO: over the budget in 2 of 3 rows; OK: 0 violations, 0 lost calls in 3 rows",
			true},
		{[]int64{1}, true, false, "INCOMPLETE; OK so far (1 of 5 rows): 0 violations, 0 lost calls", false},
		{[]int64{1}, false, true, "OK: 0 violations, 0 lost calls in 2 rows", false},
	} {
		c := Tally{Limits: limits, Rows: 5, Cut: tt.cut}
		for _, n := range tt.ipis {
			cells := []results.Value{results.Int(n), results.Int(0), results.Int(0)}
			c.Count(columns, cells)
			c.Hold("row", columns, cells)
		}
		if tt.unknown {
			for _, name := range []string{"first", "second"} {
				c.Hold(name, columns, []results.Value{results.Empty, results.Int(0), results.Int(0)})
			}
			c.Count(columns, []results.Value{results.Empty, results.Int(0), results.Int(0)})
			says(t, "a row without the value", c.Unknown, "first: --budget ipis=10: cannot be judged: ipis_per_cpu is empty, "+
				"as this engine does not count the interrupts that each CPU but the sender takes")
		}
		if got := c.Answer(c.Outcome()); got != tt.want || c.No() != tt.no {
			t.Errorf("%v: %s, %v, want %s", tt.ipis, got, c.No(), tt.want)
		}
	}
}

// TestBudgetOfEngines: a limit that no row of the engine could be held against is refused before anything runs.
func TestBudgetOfEngines(t *testing.T) {
	calibrated := timedConfig(t, "x86_64", "native", "gen:n=4", "busy=2,isolated=1", plainCosts()).Calibration
	const isolated = "budget isolated=1: cannot be judged: the timed engine counts no interrupts of single CPUs without " +
		"a calibration: name one"
	for _, tt := range []struct {
		limit  string
		table  results.Table
		change func(*Config)
		want   string
	}{
		{"stolen=1ns", RunColumns.Table("run"), func(c *Config) { c.Engine, c.Calibration = TimedEngine, calibrated }, ""},
		{"stolen=1ns", RunColumns.Table("run"), func(c *Config) { c.Engine = TimedEngine },
			"budget stolen=1ns: only the timed engine knows the time that a CPU loses, and only with a calibration"},
		{"stolen=1ns", RunColumns.Table("run"), func(c *Config) { c.Calibration = calibrated },
			"budget stolen=1ns: only the timed engine knows the time that a CPU loses, and only with a calibration"},
		{"burst=1/ms", RunColumns.Table("run"), func(c *Config) { c.Engine = HardwareEngine },
			"budget burst=1/ms: the hardware engine does not know the interrupts that a CPU takes in a millisecond"},
		{"burst=1/ms", RunColumns.Table("run"), func(*Config) {}, ""},
		{"isolated=1", RunColumns.Table("run"), func(c *Config) { c.Engine = TimedEngine }, isolated},
		{"isolated=1", RunColumns.Table("run"), func(c *Config) { c.Engine, c.Calibration = TimedEngine, calibrated }, ""},
		{"isolated=1", LedgerColumns.Table("ledger"), func(c *Config) { c.Engine = TimedEngine }, ""},
		{"isolated=1", RunColumns.Table("run"), func(c *Config) { c.Roles = make([]cpus.Role, 2) },
			"budget isolated=1: no CPU is isolated in x86_64 native, buffer 256, order table, 2 CPUs, gen:n=4, " +
				"lookup btree, fetch weak"},
	} {
		c := config(t, "x86_64", "native", "gen:n=4", "busy=2,isolated=1")
		tt.change(&c)
		says(t, tt.limit, mustBudget(t, tt.limit).Check(tt.table, &c), tt.want)
	}
}
