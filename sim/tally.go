// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/budget"
	"github.com/textpoke/textpoke/sched"
)

// Tally sums rows up: whether they keep to a budget, their cost for a CPU, and their errors.
type Tally struct {
	Limits Budget
	Rows   int  // that there are when none is missing
	Cut    bool // some are missing
	// Unknown is an error where a row lacks a value that the budget limits.
	Unknown error

	counted, held int // rows, and those that were held against the budget
	over          []string
	sums          map[string]*span
	wrong         map[int]string // by point
	broken        map[string]bool
}

// span is the least, the most and the sum of some numbers.
type span struct {
	least, most, sum float64
	known            bool
}

func (r *span) count(n float64) {
	if !r.known {
		r.least, r.most, r.known = n, n, true
	}
	r.least, r.most, r.sum = min(r.least, n), max(r.most, n), r.sum+n
}

func (r *span) String() string {
	if r.least == r.most {
		return fmt.Sprint(r.least)
	}
	return fmt.Sprintf("%v to %v", r.least, r.most)
}

// sum is what is known of a column.
func (t *Tally) sum(column string) *span {
	if t.sums == nil {
		t.sums = map[string]*span{}
	}
	if t.sums[column] == nil {
		t.sums[column] = &span{}
	}
	return t.sums[column]
}

// Count counts a row.
func (t *Tally) Count(columns []results.Column, cells []results.Value) {
	t.counted++
	for i, c := range columns {
		if n, is := cells[i].Number(); is {
			t.sum(c.Name).count(n)
		}
	}
}

// Hold holds a row against the budget; name is what people call it.
func (t *Tally) Hold(name string, columns []results.Column, cells []results.Value) {
	over, err := t.Limits.Exceeded(columns, cells)
	if err != nil && t.Unknown == nil {
		t.Unknown = fmt.Errorf("%s: --%w", name, err)
	}
	t.Judge(name, over)
}

// Judge notes what a row has too much of.
func (t *Tally) Judge(name string, over []budget.Excess) {
	if t.held++; len(over) > 0 {
		t.over = append(t.over, fmt.Sprintf("%s: %s", name, budget.Say(over)))
	}
}

// Complain notes what is wrong with a point, and the properties that this breaks.
func (t *Tally) Complain(n int, wrong string, broken []string) {
	if t.wrong == nil {
		t.wrong, t.broken = map[int]string{}, map[string]bool{}
	}
	t.wrong[n] = wrong
	for _, property := range broken {
		t.broken[property] = true
	}
}

// No tells whether the answer is no.
func (t *Tally) No() bool { return len(t.wrong)+len(t.over) > 0 }

// Faults are what is wrong, in the order of the points, and the rows that are over the budget.
func (t *Tally) Faults() (all []string) {
	for _, n := range slices.Sorted(maps.Keys(t.wrong)) {
		all = append(all, t.wrong[n])
	}
	if len(t.over) > 0 {
		all = append(all, fmt.Sprintf("\nover the budget\n  %s\n", strings.Join(t.over, "\n  ")))
	}
	return all
}

// Answer sums the rows up in a line: whether they keep to the budget, then more.
func (t *Tally) Answer(more string) string {
	var parts []string
	if t.Cut {
		parts = append(parts, "INCOMPLETE")
	}
	switch {
	case len(t.over) > 0 && t.held == 1:
		parts = append(parts, "NO: over the budget")
	case len(t.over) > 0:
		parts = append(parts, fmt.Sprintf("NO: over the budget in %d of %d rows", len(t.over), t.held))
	case t.Limits != nil && t.Unknown == nil && !t.Cut:
		parts = append(parts, "YES: within the budget")
	}
	if more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, "; ")
}

// soFar is how much an answer rests on, where rows are missing.
func (t *Tally) soFar() string {
	if !t.Cut {
		return ""
	}
	return fmt.Sprintf(" so far (%d of %d rows)", t.counted, t.Rows)
}

// Costs is what the rows cost a CPU; "" without a row.
func (t *Tally) Costs() string {
	if t.counted == 0 {
		return ""
	}
	cost := fmt.Sprintf("COST%s: %s interrupts of each CPU", t.soFar(), t.sum("ipis_per_cpu"))
	if most := t.sum("ipis_isolated_max"); most.known {
		cost += ", " + most.String() + " of an isolated one"
	}
	return cost
}

// Outcome is what went wrong while rows were made; "" without a row.
func (t *Tally) Outcome() string {
	violations, lost := t.sum("violations").sum, t.sum("lost_calls").sum
	switch {
	case t.counted == 0:
		return ""
	case violations+lost > 0:
		line := fmt.Sprintf("VIOLATIONS%s: %v", t.soFar(), violations)
		if len(t.broken) > 0 {
			line += ", " + strings.Join(slices.Sorted(maps.Keys(t.broken)), ", ")
		}
		if lost > 0 {
			line += fmt.Sprintf(", %v lost calls", lost)
		}
		return line
	case t.Cut:
		return fmt.Sprintf("OK%s: 0 violations, 0 lost calls", t.soFar())
	case t.counted == 1:
		return "OK: 0 violations, 0 lost calls in 1 row"
	}
	return fmt.Sprintf("OK: 0 violations, 0 lost calls in %d rows", t.counted)
}

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

// Exceeded lists the values of a row that exceed the budget. A limit on a value that
// the row lacks is an error.
func (b Budget) Exceeded(columns []results.Column, row []results.Value) ([]budget.Excess, error) {
	over, unknown := budget.Exceeded(b, columns, row)
	if len(unknown) > 0 {
		l := unknown[0]
		return nil, fmt.Errorf("budget %s: cannot be judged: %s is empty, as this engine does not count the %s", l,
			strings.Join(l.Columns, ", "), l.Doc)
	}
	return over, nil
}

// Count tells what the update that enables everything would cost, by counting
// alone: nothing is executed, and nothing grows with the number of steps.
func (j *Job) Count(ctx context.Context) (PlanRow, error) {
	row := j.planRow()
	var (
		count poke.Count
		cost  int3.Cost
		buf   int3.Batch
	)
	batches := func(yield func(sched.Batch) bool) {
		for b := range j.batches(len(j.queue), j.at) {
			if ctx.Err() != nil {
				return
			}
			row.flush(b.Flush)
			if j.protocol.Traps {
				cost.Add(int3.CostOf(j.Lookup, j.lookupBatch(b.Range, &buf)))
			}
			if !yield(b) {
				return
			}
		}
	}
	if err := j.compile(len(j.queue), false, batches, j.entries(), count.Add); err != nil {
		return row, err
	}
	row.Rounds, row.Stops = count.Rounds, count.Stops
	row.Lazy = count.Lazy
	row.IPIs = count.IPIs(j.Online(), j.Isolated())
	if j.Online() > 1 {
		row.perCPU(count.Rounds, count.Stops)
	}
	row.Lookup = cost
	return row, ctx.Err()
}

// planRow is the part of a row that the request says itself.
func (j *Job) planRow() PlanRow {
	own := j.Config // rows are kept when the job is over
	row := PlanRow{
		Config:  &own,
		Records: j.Table.Len(), Groups: len(j.Table.Groups()),
		Patches: len(j.queue), Skipped: j.skipped,
		Buffered: j.protocol.Batching == poke.Buffered,
	}
	if row.Buffered {
		row.BufferBytes, row.BufferPages = j.Buffer.Size(len(j.queue))
	}
	return row
}

// Rounds is how many rounds the update sends that enables everything, with a
// scenario's other rounds.
func (j *Job) Rounds() int {
	row, _ := j.runRow(context.Background(), "", true) // none where there can be no plan
	return row.Rounds
}

// Of is the job for some of its records, which the table's numbers name in any
// order, with another vector.
func (j *Job) Of(which []int, b sched.Buffer) *Job {
	wanted := make(map[int]bool, len(which))
	for _, rec := range which {
		wanted[rec] = true
	}
	some := *j
	some.Buffer, some.queue = b, spelling.Where(j.queue, func(rec int) bool { return wanted[rec] }) // which is in order
	some.shape.Patches = len(some.queue)
	return &some
}
