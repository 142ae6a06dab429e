// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// Budget is limits that the rows of plan and run must keep.
type Budget []Limit

// Limit is the most that a row may have of something.
type Limit struct {
	quantity
	Max float64 // interrupts, or whatever is counted; nanoseconds
}

// quantity is something that a budget can limit.
type quantity struct {
	name string
	// columns hold it; the first that a row knows counts. Times of the timed
	// engine come before those by the wall clock.
	columns []string
	per     string // behind a number: /ms
	time    bool   // a time, and not a count
	// modelled: only the timed engine knows it.
	modelled bool
	doc      string
}

var quantities = []quantity{
	{name: "isolated", columns: []string{"ipis_isolated_max"}, doc: "interrupts that an isolated CPU takes"},
	{name: "burst", columns: []string{"burst_max"}, per: "/ms", doc: "interrupts that a CPU takes in a millisecond"},
	{name: "ipis", columns: []string{"ipis_per_cpu"}, doc: "interrupts that each CPU but the sender takes"},
	{name: "traps", columns: []string{"traps"}, doc: "breakpoints that CPUs run into together"},
	{name: "lost", columns: []string{"lost_calls"}, doc: "calls that miss a tracer"},
	{name: "update", columns: []string{"update_ns", "elapsed_ns"}, time: true, doc: "time that an update takes"},
	{name: "stolen", columns: []string{"stolen_max_ns"}, time: true, modelled: true, doc: "time that a CPU loses"},
}

// BudgetNames are the names of what a budget can limit.
func BudgetNames() (names []string) {
	for _, m := range quantities {
		names = append(names, m.name)
	}
	return names
}

// ParseBudget reads limits such as isolated=0, burst=5/ms and update=10ms.
func ParseBudget(items []string) (Budget, error) {
	var b Budget
	for _, item := range items {
		name, value, _ := strings.Cut(item, "=")
		i := slices.IndexFunc(quantities, func(m quantity) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("budget %q: %w", item, spelling.NotOneOf(name, BudgetNames()))
		}
		m := quantities[i]
		if slices.ContainsFunc(b, func(l Limit) bool { return l.name == name }) {
			return nil, fmt.Errorf("budget %q: %s is limited twice", item, name)
		}
		most, ok := m.parse(value)
		if !ok {
			return nil, fmt.Errorf("budget %q: want %s", item, m.example())
		}
		b = append(b, Limit{m, most})
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("budget: no limit; want some of %s", strings.Join(BudgetNames(), ", "))
	}
	return b, nil
}

func (m quantity) parse(value string) (float64, bool) {
	if m.time {
		d, err := time.ParseDuration(value)
		return float64(d), err == nil && d >= 0
	}
	number, ok := strings.CutSuffix(value, m.per)
	n, err := strconv.ParseUint(number, 10, 64)
	return float64(n), ok && err == nil && n <= 1<<53 // what a float64 counts to
}

func (m quantity) example() string {
	if m.time {
		return fmt.Sprintf("a time with its unit, such as %s=2ms", m.name)
	}
	return fmt.Sprintf("a whole number from 0, such as %s=5%s", m.name, m.per)
}

// format writes a value as a budget does.
func (m quantity) format(v float64) string {
	if m.time {
		return time.Duration(math.Ceil(v)).String()
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + m.per
}

// String is the limit as ParseBudget reads it.
func (l Limit) String() string { return l.name + "=" + l.format(l.Max) }

// Check tells, before anything runs, whether rows with these columns will know
// what the budget limits.
func (b Budget) Check(t results.Table, c *Config) error {
	for _, l := range b {
		if !slices.ContainsFunc(t.Columns, func(c results.Column) bool { return slices.Contains(l.columns, c.Name) }) {
			return fmt.Errorf("budget %s: %s does not tell the %s", l, t.Name, l.doc)
		}
		if l.modelled && (c.Engine != TimedEngine || c.Calibration == nil) {
			return fmt.Errorf("budget %s: only the timed engine knows the %s, and only with a calibration", l, l.doc)
		}
		if l.name == "burst" && c.Engine == HardwareEngine {
			return fmt.Errorf("budget %s: the hardware engine does not know the %s", l, l.doc)
		}
		if l.name == "isolated" && c.Engine == TimedEngine && c.Calibration == nil && t.Name != "ledger" {
			return fmt.Errorf("budget %s: cannot be judged: the timed engine counts no interrupts of single CPUs without a "+
				"calibration: name one", l)
		}
		if l.name == "isolated" && c.Isolated() == 0 {
			return fmt.Errorf("budget %s: no CPU is isolated in %s", l, c)
		}
	}
	return nil
}

// Excess is something of which a row has more than its limit.
type Excess struct {
	Limit
	Got float64
}

// String says what it is and by how much it exceeds the limit.
func (e Excess) String() string {
	return fmt.Sprintf("%s %s, %s over the budget of %s", e.name, e.format(e.Got), e.format(e.Got-e.Max), e.format(e.Max))
}

// Exceeded is what a row has too much of. A limit on what the row does not know
// is an error.
func (b Budget) Exceeded(row *RunRow) ([]Excess, error) {
	t, err := RunColumns.Fill("run", []*RunRow{row})
	if err != nil {
		return nil, err
	}
	return b.ExceededIn(t.Columns, t.Rows[0])
}

// ExceededIn does so for a row that is cells already.
func (b Budget) ExceededIn(columns []results.Column, row []results.Value) (out []Excess, err error) {
	for _, l := range b {
		got, ok := l.of(columns, row)
		switch {
		case !ok:
			return nil, fmt.Errorf("budget %s: cannot be judged: %s is empty, as this engine does not count the %s", l,
				strings.Join(l.columns, ", "), l.doc)
		case got > l.Max:
			out = append(out, Excess{l, got})
		}
	}
	return out, nil
}

// of finds what is measured in a row.
func (m quantity) of(columns []results.Column, row []results.Value) (float64, bool) {
	for _, name := range m.columns {
		i := slices.IndexFunc(columns, func(c results.Column) bool { return c.Name == name })
		if i < 0 {
			continue
		}
		if v, ok := row[i].Number(); ok {
			return v, true
		}
	}
	return 0, false
}

// BudgetHelp says what a budget can limit, for help texts.
func BudgetHelp() string {
	var parts []string
	for _, m := range quantities {
		parts = append(parts, m.name+" ("+m.doc+")")
	}
	return strings.Join(parts, ", ")
}
