// SPDX-License-Identifier: Apache-2.0

// Package report makes tables of what interrupts says: for people and for scripts.
package report

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
)

// Report is the comparison of one or several pairs, as tables.
type Report struct {
	// CPUs has a row per interrupt row and CPU, Summary one per interrupt row.
	CPUs, Summary results.Table
	// Consistent is false when a row that was explained has no explanation.
	Consistent bool

	all    results.Table
	said   []string // a sentence for each row that was explained
	perCPU bool
}

// row is an interrupt row of a pair: the count of one CPU, or the summary.
type row struct {
	interrupts.Comparison
	pair  int // from 1; 0 when there is only one
	count int // index of the CPU's count; noCount in the summary
}

const noCount = -1

// of is what a row of one CPU has in counts, a list with an entry for each CPU.
func (r row) of(counts []int64) any {
	if counts == nil {
		return results.Empty
	}
	return counts[r.count]
}

func (r row) cpu() any {
	if r.RowDelta.CPUs == nil {
		return results.Empty
	}
	return r.RowDelta.CPUs[r.count]
}

// The columns.
var (
	pairColumn = results.Columns[row]{
		{Name: "pair", Kind: results.Integer,
			Doc:  "Which comparison it is, counted from 1; empty when there is only one.",
			Cell: func(r row) any { return results.If(r.pair > 0, r.pair) }},
	}
	rowColumn = results.Columns[row]{
		{Name: "row", Doc: "The name of the row in /proc/interrupts.", Cell: func(r row) any { return r.Name }},
	}
	cpuColumns = results.Columns[row]{
		{Name: "cpu", Kind: results.Integer,
			Doc:  "The CPU; empty on a summary, and on rows that count for the whole machine.",
			Cell: row.cpu},
		{Name: "before", Kind: results.Integer,
			Doc: "The count before.", Cell: func(r row) any { return r.of(r.Before) }},
		{Name: "after", Kind: results.Integer,
			Doc: "The count after.", Cell: func(r row) any { return r.of(r.After) }},
		{Name: "delta", Kind: results.Integer, Doc: "The interrupts that the CPU took in between.",
			Cell: func(r row) any { return r.of(r.Delta) }},
		{Name: "sent_rounds", Kind: results.Integer, Doc: "The rounds that this CPU must have sent.",
			Cell: func(r row) any { return r.of(r.Sent) }},
	}.When(func(r row) bool { return r.count != noCount })
	summaryColumns = slices.Concat(
		results.Columns[row]{
			{Name: "rounds", Kind: results.Integer,
				Doc:  "The rounds of interrupts, each from one CPU to all others, that explain the row.",
				Cell: func(r row) any { return r.Rounds }},
			{Name: "senders", Kind: results.Integer,
				Doc:  "How many CPUs sent them; more than one if the patcher migrated.",
				Cell: func(r row) any { return r.Senders }},
		}.When(func(r row) bool { return r.Known }),
		results.Columns[row]{
			{Name: "about", Kind: results.Integer,
				Doc:  "Where it is not consistent: the rounds that the counts are nearest to.",
				Cell: func(r row) any { return r.Near.Rounds }},
		}.When(func(r row) bool { return !r.Known && r.Near != nil }),
		results.Columns[row]{
			{Name: "sent_by", Doc: "The CPUs that sent the rounds, those with the most first.",
				Cell: func(r row) any { return results.OrEmpty(r.SentBy()) }},
			{Name: "left_over", Doc: "The interrupts that no round explains, and where.",
				Cell: func(r row) any { return results.OrEmpty(r.LeftOver()) }},
			{Name: "interrupts", Kind: results.Integer, Doc: "The interrupts that all CPUs took together.",
				Cell: func(r row) any { return results.If(r.Delta != nil, r.Interrupts()) }},
			{Name: "consistent", Kind: results.Boolean,
				Doc:  "Whether any sequence of rounds gives these deltas; empty on rows that are not explained.",
				Cell: func(r row) any { return results.If(r.Explained, r.Consistent) }},
			{Name: "reason", Doc: "Why it is not consistent, or what else to know.",
				Cell: func(r row) any { return results.OrEmpty(r.Reason) }},
		},
		results.Columns[row]{
			{Name: "patches_min", Kind: results.Integer, Doc: "The fewest patches that need so many rounds.",
				Cell: func(r row) any { return r.Patches.Min }},
			{Name: "patches_max", Kind: results.Integer, Doc: "The most patches that so many rounds allow.",
				Cell: func(r row) any { return r.Patches.Max }},
		}.When(func(r row) bool { return r.Patches != nil }),
		results.Columns[row]{
			{Name: "description", Doc: "What /proc/interrupts calls the row.",
				Cell: func(r row) any { return results.OrEmpty(r.Description) }},
		},
	).When(func(r row) bool { return r.count == noCount })
	allColumns = slices.Concat(rowColumn, cpuColumns, summaryColumns, pairColumn)
)

// Columns is an empty table of all that a [Report] has for scripts.
func Columns() results.Table { return allColumns.Table("interrupts") }

// NewReport compares each pair and explains its rows. With perCPU, people read each CPU's counts, too.
func NewReport(pairs []interrupts.Pair, o interrupts.Options, perCPU bool) (*Report, error) {
	r := &Report{Consistent: true, perCPU: perCPU}
	var counts, summaries, all []row
	for i, p := range pairs {
		compared, err := interrupts.Compare(p, o)
		if err != nil {
			return nil, err
		}
		for _, found := range compared {
			row := row{Comparison: found}
			r.Consistent = r.Consistent && (row.Consistent || !row.Explained)
			if len(pairs) > 1 {
				row.pair = i + 1
			}
			for row.count = range max(len(row.Before), len(row.After)) {
				counts, all = append(counts, row), append(all, row)
			}
			row.count = noCount
			if row.Explained {
				r.said = append(r.said, row.Sentence())
			}
			summaries, all = append(summaries, row), append(all, row)
		}
	}
	var errs [3]error
	r.CPUs, errs[0] = slices.Concat(pairColumn, rowColumn, cpuColumns).Fill("interrupts-cpus", counts)
	r.Summary, errs[1] = slices.Concat(pairColumn, rowColumn, summaryColumns).Fill("interrupts-summary", summaries)
	r.all, errs[2] = allColumns.Fill("interrupts", all)
	return r, errors.Join(errs[:]...)
}

// All is the report as one table: for each interrupt row a row per CPU, and below
// them a summary row, whose columns are empty in the others.
func (r *Report) All() results.Table { return r.all }

// Write writes the report: for people a sentence and a line for each row, and each CPU
// where that was asked for; otherwise as the table that All returns.
func (r *Report) Write(w io.Writer, f results.Format) error {
	if f.String() != string(results.FormatTable) {
		return results.Write(w, f, r.all)
	}
	for _, s := range r.said {
		if _, err := fmt.Fprintln(w, s); err != nil {
			return fmt.Errorf("write interrupts: %w", err)
		}
	}
	tables := []results.Table{r.Summary}
	if r.perCPU {
		tables = append(tables, r.CPUs)
	}
	for i, t := range tables {
		if i > 0 || len(r.said) > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return fmt.Errorf("write interrupts: %w", err)
			}
		}
		if err := results.Write(w, f, t); err != nil {
			return err
		}
	}
	return nil
}
