// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"errors"
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
	// Exact asks only for rounds that leave nothing over: what they are near to is left
	// out, and two CPUs, of which every pair of counts fits, get their rounds.
	Exact bool
	// Background, unless nil, is a reading as long before each pair as the pair is apart,
	// with nothing switched in between: what grew by then is taken off.
	Background *Snapshot
	// PerCPU adds each CPU's counts to what people read.
	PerCPU bool
}

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

// reportRow is an interrupt row of a pair: the count of one CPU, or the summary.
type reportRow struct {
	pair int // from 1; 0 when there is only one
	RowDelta
	finding
	count int // index of the CPU's count; noCount in the summary
}

const noCount = -1

// finding is what the deltas of an interrupt row say.
type finding struct {
	explained bool // whether it was looked for
	Explanation
	near    *Nearest  // nil where nothing is near, or it was not asked for
	patches *Interval // nil where it was not asked for, or does not follow
}

func (r reportRow) sentBy() string {
	switch {
	case r.Known && r.Rounds > 0:
		return senders(r.Sent, r.Rounds, r.RowDelta.CPUs)
	case !r.Known && r.near != nil:
		return senders(r.near.Sent, r.near.Rounds, r.RowDelta.CPUs)
	}
	return ""
}

func (r reportRow) leftOver() string {
	if r.Known || r.near == nil {
		return ""
	}
	return leftOver(r.near.Left, r.RowDelta.CPUs)
}

// interrupts is the sum of a row's growth.
func (r reportRow) interrupts() (sum int64) {
	for _, d := range r.Delta {
		sum += d
	}
	return sum
}

// sentence is what a row says, for people.
func (r reportRow) sentence() string {
	switch {
	case r.Known && r.Rounds == 0:
		return r.Name + ": no rounds"
	case r.Known:
		return fmt.Sprintf("%s: %s, sent by %s", r.Name, plural(int(r.Rounds), "round"), r.sentBy())
	case r.near == nil:
		return r.Name + ": " + r.Reason
	case r.near.Rounds == 0:
		return fmt.Sprintf("%s: no rounds; left over: %s", r.Name, r.leftOver())
	}
	return fmt.Sprintf("%s: about %s, sent by %s; left over: %s", r.Name, plural(int(r.near.Rounds), "round"), r.sentBy(),
		r.leftOver())
}

// of is what a row of one CPU has in counts, a list with an entry for each CPU.
func (r reportRow) of(counts []int64) any {
	if counts == nil {
		return results.Empty
	}
	return counts[r.count]
}

func (r reportRow) cpu() any {
	if r.RowDelta.CPUs == nil {
		return results.Empty
	}
	return r.RowDelta.CPUs[r.count]
}

// The columns.
var (
	pairColumn = results.Columns[reportRow]{
		{Name: "pair", Kind: results.Integer,
			Doc:  "Which comparison it is, counted from 1; empty when there is only one.",
			Cell: func(r reportRow) any { return results.If(r.pair > 0, r.pair) }},
	}
	rowColumn = results.Columns[reportRow]{
		{Name: "row", Doc: "The name of the row in /proc/interrupts.", Cell: func(r reportRow) any { return r.Name }},
	}
	cpuColumns = results.Columns[reportRow]{
		{Name: "cpu", Kind: results.Integer,
			Doc:  "The CPU; empty on a summary, and on rows that count for the whole machine.",
			Cell: reportRow.cpu},
		{Name: "before", Kind: results.Integer,
			Doc: "The count before.", Cell: func(r reportRow) any { return r.of(r.Before) }},
		{Name: "after", Kind: results.Integer,
			Doc: "The count after.", Cell: func(r reportRow) any { return r.of(r.After) }},
		{Name: "delta", Kind: results.Integer, Doc: "The interrupts that the CPU took in between.",
			Cell: func(r reportRow) any { return r.of(r.Delta) }},
		{Name: "sent_rounds", Kind: results.Integer, Doc: "The rounds that this CPU must have sent.",
			Cell: func(r reportRow) any { return r.of(r.Sent) }},
	}.When(func(r reportRow) bool { return r.count != noCount })
	summaryColumns = slices.Concat(
		results.Columns[reportRow]{
			{Name: "rounds", Kind: results.Integer,
				Doc:  "The rounds of interrupts, each from one CPU to all others, that explain the row.",
				Cell: func(r reportRow) any { return r.Rounds }},
			{Name: "senders", Kind: results.Integer,
				Doc:  "How many CPUs sent them; more than one if the patcher migrated.",
				Cell: func(r reportRow) any { return r.Senders }},
		}.When(func(r reportRow) bool { return r.Known }),
		results.Columns[reportRow]{
			{Name: "about", Kind: results.Integer,
				Doc:  "Where it is not consistent: the rounds that the counts are nearest to.",
				Cell: func(r reportRow) any { return r.near.Rounds }},
		}.When(func(r reportRow) bool { return !r.Known && r.near != nil }),
		results.Columns[reportRow]{
			{Name: "sent_by", Doc: "The CPUs that sent the rounds, those with the most first.",
				Cell: func(r reportRow) any { return results.OrEmpty(r.sentBy()) }},
			{Name: "left_over", Doc: "The interrupts that no round explains, and where.",
				Cell: func(r reportRow) any { return results.OrEmpty(r.leftOver()) }},
			{Name: "interrupts", Kind: results.Integer, Doc: "The interrupts that all CPUs took together.",
				Cell: func(r reportRow) any { return results.If(r.Delta != nil, r.interrupts()) }},
			{Name: "consistent", Kind: results.Boolean,
				Doc:  "Whether any sequence of rounds gives these deltas; empty on rows that are not explained.",
				Cell: func(r reportRow) any { return results.If(r.explained, r.Consistent) }},
			{Name: "reason", Doc: "Why it is not consistent, or what else to know.",
				Cell: func(r reportRow) any { return results.OrEmpty(r.Reason) }},
		},
		results.Columns[reportRow]{
			{Name: "patches_min", Kind: results.Integer, Doc: "The fewest patches that need so many rounds.",
				Cell: func(r reportRow) any { return r.patches.Min }},
			{Name: "patches_max", Kind: results.Integer, Doc: "The most patches that so many rounds allow.",
				Cell: func(r reportRow) any { return r.patches.Max }},
		}.When(func(r reportRow) bool { return r.patches != nil }),
		results.Columns[reportRow]{
			{Name: "description", Doc: "What /proc/interrupts calls the row.",
				Cell: func(r reportRow) any { return results.OrEmpty(r.Description) }},
		},
	).When(func(r reportRow) bool { return r.count == noCount })
	allColumns = slices.Concat(rowColumn, cpuColumns, summaryColumns, pairColumn)
)

// Columns is an empty table of all that a [Report] has for scripts.
func Columns() results.Table { return allColumns.Table("interrupts") }

// NewReport compares each pair and explains its rows.
func NewReport(pairs []Pair, o Options) (*Report, error) {
	r := &Report{Consistent: true, perCPU: o.PerCPU}
	var counts, summaries, all []reportRow
	for i, p := range pairs {
		deltas, err := o.deltas(p)
		if err != nil {
			return nil, err
		}
		for _, row := range deltas {
			r.Consistent = r.Consistent && (row.Consistent || !row.explained)
			if len(pairs) > 1 {
				row.pair = i + 1
			}
			for row.count = range max(len(row.Before), len(row.After)) {
				counts, all = append(counts, row), append(all, row)
			}
			row.count = noCount
			if row.explained {
				r.said = append(r.said, row.sentence())
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

// deltas are the rows of a pair that the report shows, with what they say.
func (o Options) deltas(p Pair) (shown []reportRow, err error) {
	deltas, err := Diff(p.Before, p.After)
	if err != nil {
		return nil, err
	}
	for _, name := range o.Rows {
		if !slices.ContainsFunc(deltas, func(d RowDelta) bool { return d.Name == name }) {
			return nil, &ParseError{p.Before.Name, 0, name, "there is no such row"}
		}
	}
	if o.Background != nil {
		idle, err := Diff(*o.Background, p.Before)
		if err != nil {
			return nil, err
		}
		deltas = Subtract(deltas, idle)
	}
	for _, d := range deltas {
		row := reportRow{RowDelta: d}
		switch {
		case o.explains(d, len(deltas)):
			row.finding, err = o.find(d)
		case len(o.Rows) > 0 || !o.All && !d.Changed():
			continue
		case d.Missing() != "":
			row.Reason = "the row is missing " + d.Missing()
		}
		if err != nil {
			return nil, err
		}
		shown = append(shown, row)
	}
	return shown, nil
}

// find explains a row, by patches too where the slots are known.
func (o Options) find(d RowDelta) (finding, error) {
	f := finding{explained: true, Explanation: d.Explain()}
	if !o.Exact && len(d.CPUs) == 2 && f.Known && f.Rounds > 0 {
		// Consistent, whatever it is.
		f.Explanation = Explanation{Consistent: true, Reason: "nothing follows: with two CPUs any two counts fit"}
	}
	if near, ok := Near(d.Delta); ok && !o.Exact && !f.Known && d.CPUs != nil {
		f.near = &near
	}
	if !f.Known || o.Slots == 0 {
		return f, nil
	}
	patches, err := Patches(f.Rounds, o.Slots, o.Other)
	if o.Other.Lo > f.Rounds { // what is known does not fit what was counted
		f.Consistent = false
	}
	reasons := slices.DeleteFunc([]string{f.Reason, patches.Reason}, func(s string) bool { return s == "" })
	f.Reason, f.patches = strings.Join(reasons, "; "), &patches
	return f, err
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
		if err := results.WriteTable(w, t); err != nil {
			return err
		}
	}
	return nil
}
