// SPDX-License-Identifier: Apache-2.0

// Package report makes tables of what interrupts says: for people and for scripts.
package report

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Report is the comparison of one or several pairs, as tables.
type Report struct {
	// CPUs has a row per interrupt row and CPU, Summary one per interrupt row.
	CPUs, Summary results.Table
	// Consistent is false when a row that was explained has no explanation.
	Consistent bool

	// All is both as one table: for each interrupt row a row per CPU, and below them a summary row, whose columns
	// are empty in the others.
	All    results.Table
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

// Nearest tells whether rounds are named which do not explain the row.
func (r row) Nearest() bool { return !r.Known && r.Near != nil }

func (r row) cpu() any {
	if r.RowDelta.CPUs == nil {
		return results.Empty
	}
	return r.RowDelta.CPUs[r.count]
}

// The columns.
var (
	pairColumn = results.Declare[row](declared, "pair", nil)
	rowColumn  = results.Declare[row](declared, "row", nil)
	cpuColumns = results.Declare(declared, "cpu", map[string]func(row) any{
		"cpu":         row.cpu,
		"before":      func(r row) any { return r.of(r.Before) },
		"after":       func(r row) any { return r.of(r.After) },
		"delta":       func(r row) any { return r.of(r.Delta) },
		"sent_rounds": func(r row) any { return r.of(r.Sent) },
	}).When(func(r row) bool { return r.count != noCount })
	summaryColumns = results.Declare[row](declared, "summary", nil).When(func(r row) bool { return r.count == noCount })
	allColumns     = slices.Concat(rowColumn, cpuColumns, summaryColumns, pairColumn)
)

// Columns is an empty table with a [Report]'s columns for scripts.
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
	r.All, errs[2] = allColumns.Fill("interrupts", all)
	return r, errors.Join(errs[:]...)
}

// Write writes the report: for people a sentence and a line for each row, and each CPU
// where that was asked for; otherwise as the table that All returns.
func (r *Report) Write(w io.Writer, f results.Format) error {
	if f.String() != string(results.FormatTable) {
		return results.Write(w, f, r.All)
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
