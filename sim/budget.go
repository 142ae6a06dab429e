// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/budget"
)

// Budget is limits that the rows of plan and run must keep.
type Budget []budget.Limit

// Limits are what they can be limited in. Times of the timed engine come before those by
// the wall clock.
var Limits = budget.Quantities{
	{Name: "isolated", Columns: []string{"ipis_isolated_max"}, Doc: "interrupts that an isolated CPU takes"},
	{Name: "burst", Columns: []string{"burst_max"}, Per: "/ms", Doc: "interrupts that a CPU takes in a millisecond"},
	{Name: "ipis", Columns: []string{"ipis_per_cpu"}, Doc: "interrupts that each CPU but the sender takes"},
	{Name: "traps", Columns: []string{"traps"}, Doc: "breakpoints that CPUs run into together"},
	{Name: "lost", Columns: []string{"lost_calls"}, Doc: "calls that miss a tracer"},
	{Name: "update", Columns: []string{"update_ns", "elapsed_ns"}, Time: true, Doc: "time that an update takes"},
	{Name: "stolen", Columns: []string{"stolen_max_ns"}, Time: true, Doc: "time that a CPU loses"},
}

// Check tells, before anything runs, whether rows with these columns will know
// what the budget limits.
func (b Budget) Check(t results.Table, c *Config) error {
	for _, l := range b {
		if !slices.ContainsFunc(t.Columns, func(c results.Column) bool { return slices.Contains(l.Columns, c.Name) }) {
			return fmt.Errorf("budget %s: %s does not tell the %s", l, t.Name, l.Doc)
		}
		if l.Name == "stolen" && (c.Engine != TimedEngine || c.Calibration == nil) {
			return fmt.Errorf("budget %s: only the timed engine knows the %s, and only with a calibration", l, l.Doc)
		}
		if l.Name == "burst" && c.Engine == HardwareEngine {
			return fmt.Errorf("budget %s: the hardware engine does not know the %s", l, l.Doc)
		}
		if l.Name == "isolated" && c.Engine == TimedEngine && c.Calibration == nil && t.Name != "ledger" {
			return fmt.Errorf("budget %s: cannot be judged: the timed engine counts no interrupts of single CPUs without a "+
				"calibration: name one", l)
		}
		if l.Name == "isolated" && c.Isolated() == 0 {
			return fmt.Errorf("budget %s: no CPU is isolated in %s", l, c)
		}
	}
	return nil
}

// Exceeded is what a row has too much of. A limit on what the row does not know
// is an error.
func (b Budget) Exceeded(columns []results.Column, row []results.Value) ([]budget.Excess, error) {
	over, unknown := budget.Exceeded(b, columns, row)
	if len(unknown) > 0 {
		l := unknown[0]
		return nil, fmt.Errorf("budget %s: cannot be judged: %s is empty, as this engine does not count the %s", l,
			strings.Join(l.Columns, ", "), l.Doc)
	}
	return over, nil
}
