// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// Options chooses what a [Report] holds.
type Options struct {
	// Rows are the names of the rows to compare and to explain. Without any, all
	// rows that changed are compared, and those are explained that count function
	// calls, the interrupts of which rounds are made (CAL on x86, IPI1 on arm64
	// and riscv64), or that are the only row.
	Rows []string
	// All keeps rows that did not change, which are left out otherwise unless they
	// are explained.
	All bool
	// Slots, unless 0, asks for the interval of patches: see [Patches].
	Slots int
	// Other is how many of the rounds are known not to be those of patches.
	Other Range
}

// Report is the comparison of one or several pairs, as tables.
type Report struct {
	// CPUs has a row per interrupt row and CPU, Summary one per interrupt row.
	CPUs, Summary results.Table
	// Consistent is false when a row that was explained has no explanation.
	Consistent bool

	all results.Table
}

// The columns, in the order of the sheet that holds them all.
var (
	columnRow  = results.Column{Name: "row", Doc: "The name of the row in /proc/interrupts."}
	columnPair = results.Column{Name: "pair",
		Doc: "Which comparison it is, counted from 1; empty when there is only one."}
	columnsPerCPU = []results.Column{
		{Name: "cpu", Doc: "The CPU; empty on a summary, and on rows that count for the whole machine."},
		{Name: "before", Doc: "The count before."},
		{Name: "after", Doc: "The count after."},
		{Name: "delta", Doc: "The interrupts that the CPU took in between."},
		{Name: "sent_rounds", Doc: "The rounds that this CPU must have sent."},
	}
	columnsSummary = []results.Column{
		{Name: "rounds", Doc: "The rounds of interrupts, each from one CPU to all others, that explain the row."},
		{Name: "senders", Doc: "How many CPUs sent them; more than one if the patcher migrated."},
		{Name: "consistent", Doc: "Whether any sequence of rounds gives these deltas; empty on rows that are not explained."},
		{Name: "reason", Doc: "Why it is not consistent, or what else to know."},
		{Name: "patches_min", Doc: "The fewest patches that need so many rounds."},
		{Name: "patches_max", Doc: "The most patches that so many rounds allow."},
		{Name: "description", Doc: "What /proc/interrupts calls the row."},
	}
)

func newReport() *Report {
	join := func(name string, columns ...[]results.Column) results.Table {
		return results.Table{Name: name, Columns: slices.Concat(columns...)}
	}
	row, pair := []results.Column{columnRow}, []results.Column{columnPair}
	return &Report{
		CPUs:       join("interrupts-cpus", pair, row, columnsPerCPU),
		Summary:    join("interrupts-summary", pair, row, columnsSummary),
		Consistent: true,
		all:        join("interrupts", row, columnsPerCPU, columnsSummary, pair),
	}
}

// NewReport compares each pair and explains its rows.
func NewReport(pairs []Pair, o Options) (*Report, error) {
	r := newReport()
	for i, p := range pairs {
		deltas, err := Diff(p.Before, p.After)
		if err != nil {
			return nil, err
		}
		for _, name := range o.Rows {
			if !slices.ContainsFunc(deltas, func(d RowDelta) bool { return d.Name == name }) {
				return nil, &ParseError{p.Before.Name, 0, name, "there is no such row"}
			}
		}
		for _, d := range deltas {
			explained := o.explains(d, len(deltas))
			if len(o.Rows) > 0 && !explained || !explained && !o.All && !d.Changed() {
				continue
			}
			pair := results.Empty
			if len(pairs) > 1 {
				pair = results.Int(int64(i + 1))
			}
			if err := r.add(pair, d, explained, o); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// explains tells whether the row is one that rounds should account for. Timers,
// devices and rescheduling are not made of broadcasts.
func (o Options) explains(d RowDelta, rows int) bool {
	if len(o.Rows) > 0 {
		return slices.Contains(o.Rows, d.Name)
	}
	if d.Description == "" {
		return rows == 1 || d.Name == "CAL" || d.Name == "IPI1"
	}
	calls := strings.ToLower(d.Description)
	return rows == 1 || strings.Contains(calls, "function call interrupts") && !strings.HasPrefix(calls, "single")
}

// add appends one interrupt row to all sheets.
func (r *Report) add(pair results.Value, d RowDelta, explained bool, o Options) error {
	var e Explanation
	summary, err := r.summary(d, explained, o, &e)
	if err != nil {
		return err
	}
	if err := addRow(&r.Summary, []any{pair, d.Name}, summary); err != nil {
		return err
	}
	blankCPU := blanks(len(columnsPerCPU))
	blankSummary := blanks(len(columnsSummary))
	for i := range max(len(d.Before), len(d.After)) {
		cells := perCPU(d, i, e)
		if err := addRow(&r.CPUs, []any{pair, d.Name}, cells); err != nil {
			return err
		}
		if err := addRow(&r.all, []any{d.Name}, cells, blankSummary, []any{pair}); err != nil {
			return err
		}
	}
	return addRow(&r.all, []any{d.Name}, blankCPU, summary, []any{pair})
}

// perCPU is the cells of columnsPerCPU.
func perCPU(d RowDelta, i int, e Explanation) []any {
	cells := blanks(len(columnsPerCPU))
	if d.CPUs != nil {
		cells[0] = d.CPUs[i]
	}
	for c, counts := range [][]int64{d.Before, d.After, d.Delta, e.Sent} {
		if counts != nil {
			cells[c+1] = counts[i]
		}
	}
	return cells
}

// summary is the cells of columnsSummary, and the explanation behind them.
func (r *Report) summary(d RowDelta, explained bool, o Options, e *Explanation) ([]any, error) {
	cells := blanks(len(columnsSummary))
	cells[6] = text(d.Description)
	if !explained {
		if side := d.Missing(); side != "" {
			cells[3] = "the row is missing " + side
		}
		return cells, nil
	}
	*e = d.Explain()
	reasons := []string{e.Reason}
	cells[2] = e.Consistent
	r.Consistent = r.Consistent && e.Consistent
	if e.Known {
		cells[0], cells[1] = e.Rounds, e.Senders
	}
	if e.Known && o.Slots != 0 {
		patches, err := Patches(e.Rounds, o.Slots, o.Other)
		if err != nil {
			return nil, err
		}
		cells[4], cells[5] = patches.Min, patches.Max
		if o.Other.Lo > e.Rounds { // what is known does not fit what was counted
			cells[2], r.Consistent = false, false
		}
		reasons = append(reasons, patches.Reason)
	}
	reasons = slices.DeleteFunc(reasons, func(s string) bool { return s == "" })
	cells[3] = text(strings.Join(reasons, "; "))
	return cells, nil
}

// text is a cell that is empty when there is nothing to say.
func text(s string) results.Value {
	if s == "" {
		return results.Empty
	}
	return results.String(s)
}

func blanks(n int) []any {
	cells := make([]any, n)
	for i := range cells {
		cells[i] = results.Empty
	}
	return cells
}

func addRow(t *results.Table, parts ...[]any) error {
	if err := t.Add(slices.Concat(parts...)...); err != nil {
		return fmt.Errorf("interrupts report: %w", err)
	}
	return nil
}

// All is the report as one table: for each interrupt row a row per CPU, and below
// them a summary row, whose columns are empty in the others.
func (r *Report) All() results.Table { return r.all }

// Write writes the report: for people as two tables, otherwise as the one that
// All returns.
func (r *Report) Write(w io.Writer, f results.Format) error {
	if f.String() != string(results.FormatTable) {
		return results.Write(w, f, r.all)
	}
	if err := results.WriteTable(w, r.CPUs); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write interrupts: %w", err)
	}
	return results.WriteTable(w, r.Summary)
}
