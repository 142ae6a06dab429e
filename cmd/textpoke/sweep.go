// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/journal"
	"github.com/textpoke/textpoke/sim"
)

// sweeps marks commands whose lists mean the cross product, also of seeds.
const sweeps = "sweeps"

// sweepFlags is the flags of how combinations are gone through.
type sweepFlags struct {
	jobs        int // 0: not given
	resume, yes bool
	budget      []string
	limits      sim.Budget // of budget
}

func (s *sweepFlags) register(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[sweeps] = ""
	f := cmd.Flags()
	f.IntVar(&s.jobs, "jobs", 0,
		"`number` of combinations that are worked on at a time (default: the number of cores; 1 with the live engine)")
	f.BoolVar(&s.resume, "resume", false,
		"go on with an interrupted run: reuse what it finished in the directory of --out")
	f.BoolVar(&s.yes, "yes", false, fmt.Sprintf("also do more than %d combinations", manyPoints))
	f.StringSliceVar(&s.budget, "budget", nil,
		"`limits` for each row, such as ipis=100 or isolated=0,burst=5/ms: the exit code is 1 when one is "+
			"exceeded. Limits: "+sim.BudgetHelp())
}

// read checks the flags and reads the budget.
func (s *sweepFlags) read(cmd *cobra.Command) (sim.Budget, error) {
	changed := cmd.Flags().Changed
	switch {
	case changed("jobs") && s.jobs < 1:
		return nil, fmt.Errorf("--jobs %d: want 1 or more", s.jobs)
	case s.resume && !changed("out"):
		return nil, errors.New("--resume goes with --out, the directory of the interrupted run")
	case !changed("budget"):
		return nil, nil
	}
	b, err := sim.ParseBudget(s.budget)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return b, nil
}

// sweep goes through combinations, a point each, and writes their rows.
type sweep struct {
	*common
	flags    *sweepFlags
	configs  []sim.Config
	perPoint int            // rows of a point
	table    results.Table  // of the rows
	beside   *results.Table // of what is beside them, nil for none; its first column is the number of the row
	workers  int            // if --jobs does not say
	again    string         // what to know of rows that are reused, "" for nothing
	// point makes the rows of one combination, and says what is wrong with them,
	// for people.
	point func(ctx context.Context, c *sim.Config, add func(journal.Row)) (wrong string, err error)

	counts string // column whose range is the answer, "" for none

	out      output
	journal  *journal.Journal
	reused   map[int]journal.Entry
	bar      *progressbar.ProgressBar
	mine     []int    // the points of this shard
	over     []string // rows that are over the budget
	cost     span     // of what each CPU takes
	isolated span     // of what the isolated CPU takes that takes most
	cut      bool     // some rows are missing
	unknown  error    // what a row does not know of the budget
	texts    bool     // there was text above the table

	mu    sync.Mutex
	wrong map[int]string // by point
}

// item is a row on its way from its point to the output.
type item struct {
	journal.Row
	number int // among the rows of all shards, from 0
	reused bool
}

// run makes all rows. What was finished is written, whatever happens, and stays
// in the journal until everything is.
func (s *sweep) run(ctx context.Context) error {
	for i := range s.configs {
		if err := s.flags.limits.Check(s.table, &s.configs[i]); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	if _, _, err := s.pick(s.table.Columns); err != nil {
		return err
	}
	s.divide(len(s.configs), s.perPoint)
	s.mine = s.shard.Points(len(s.configs))
	f, err := s.openFiles()
	if err != nil {
		return err
	}
	s.wrong = map[int]string{}
	s.out = output{c: s.common, table: s.table, keep: f != nil}
	if s.counts != "" || s.flags.limits != nil {
		s.out.above = s.answer
	}
	if f != nil {
		if err := s.openJournal(f); err != nil {
			return err
		}
	}
	s.openBar()
	failed := inOrder(ctx, len(s.mine), s.jobs(), s.make, s.take)
	if s.bar != nil {
		_ = s.bar.Clear() // nobody reads what cannot be written there
	}
	err = s.finish(f, failed)
	if s.journal != nil {
		err = errors.Join(err, s.closeJournal(err == nil))
	}
	return s.verdict(err)
}

func (s *sweep) jobs() int {
	switch {
	case s.flags.jobs > 0:
		return s.flags.jobs
	case s.workers > 0:
		return s.workers
	}
	return runtime.GOMAXPROCS(0)
}

// openBar shows somebody who watches how far it is.
func (s *sweep) openBar() {
	rows := (len(s.mine) - len(s.reused)) * s.perPoint
	if !s.stderrIsTerminal() || rows < 2 {
		return
	}
	s.unwatch()
	s.bar = progressbar.NewOptions(rows, progressbar.OptionSetWriter(s.streams.err),
		progressbar.OptionSetDescription("rows"), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetRenderBlankState(true), progressbar.OptionClearOnFinish())
}

// make makes the rows of a point, the n-th of this shard, or takes them from the journal. A
// finished point is in the journal while its rows wait for their turn.
func (s *sweep) make(ctx context.Context, n int, give func(item)) error {
	i := s.mine[n]
	number := i * s.perPoint
	if e, ok := s.reused[i]; ok {
		for k, row := range e.Rows {
			give(item{row, number + k, true})
		}
		s.complain(i, e.Wrong)
		return nil
	}
	e := journal.Entry{Point: i, Key: s.key(i)}
	wrong, err := s.point(ctx, &s.configs[i], func(row journal.Row) {
		if s.journal != nil {
			e.Rows = append(e.Rows, row)
		}
		give(item{row, number, false})
		number++
	})
	s.complain(i, wrong)
	if err == nil && s.journal != nil {
		e.Wrong = wrong
		err = s.journal.Add(e)
	}
	return err
}

func (s *sweep) complain(i int, wrong string) {
	if wrong == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong[i] = wrong
}

// take writes a row.
func (s *sweep) take(it item) error {
	if s.bar != nil && (it.Text != "" || s.format != results.FormatTable) {
		_ = s.bar.Clear()
	}
	if it.Text != "" {
		s.texts = true
		if _, err := fmt.Fprint(s.streams.out, it.Text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if err := s.out.addRow(it.Cells); err != nil {
		return err
	}
	if s.out.keep {
		for _, cells := range it.Others {
			s.beside.Rows = append(s.beside.Rows, append(journal.Cells{results.Int(int64(it.number))}, cells[1:]...))
		}
	}
	if s.bar != nil && !it.reused {
		_ = s.bar.Add(1)
	}
	s.hold(it.number, it.Cells)
	s.cost.count(s.table.Columns, s.counts, it.Cells)
	s.isolated.count(s.table.Columns, "ipis_isolated_max", it.Cells)
	return nil
}

// span is the least and the most of some numbers.
type span struct {
	least, most float64
	known       bool
}

// count counts a row's cell in, where it is a number.
func (r *span) count(columns []results.Column, name string, cells []results.Value) {
	i := slices.IndexFunc(columns, func(c results.Column) bool { return c.Name == name })
	if i < 0 {
		return
	}
	n, is := cells[i].Number()
	switch {
	case !is:
	case r.known:
		r.least, r.most = min(r.least, n), max(r.most, n)
	default:
		r.least, r.most, r.known = n, n, true
	}
}

func (r *span) String() string {
	if r.least == r.most {
		return fmt.Sprint(r.least)
	}
	return fmt.Sprintf("%v to %v", r.least, r.most)
}

// answer is what the rows come to, in a line, for people: whether they keep to the budget,
// and what they cost a CPU.
func (s *sweep) answer() string {
	var parts []string
	switch {
	case len(s.over) > 0 && s.out.rows == 1:
		parts = append(parts, "NO: over the budget")
	case len(s.over) > 0:
		parts = append(parts, fmt.Sprintf("NO: over the budget in %d of %d rows", len(s.over), s.out.rows))
	case s.flags.limits != nil && s.unknown == nil && !s.cut:
		parts = append(parts, "YES: within the budget")
	}
	if s.cost.known {
		cost := "COST: "
		if s.cut {
			cost = fmt.Sprintf("COST so far (%d of %d rows): ", s.out.rows, len(s.mine)*s.perPoint)
		}
		cost += s.cost.String() + " interrupts of each CPU"
		if s.isolated.known {
			cost += ", " + s.isolated.String() + " of an isolated one"
		}
		parts = append(parts, cost)
	}
	return s.painted(strings.Join(parts, "; "))
}

// hold holds a row against the budget.
func (s *sweep) hold(number int, cells []results.Value) {
	excess, err := s.flags.limits.ExceededIn(s.table.Columns, cells)
	if err != nil && s.unknown == nil {
		s.unknown = fmt.Errorf("row %d: --%w", number+1, err)
	}
	if len(excess) > 0 {
		var what []string
		for _, e := range excess {
			what = append(what, e.String())
		}
		s.over = append(s.over, fmt.Sprintf("row %d: %s", number+1, strings.Join(what, "; ")))
	}
}

// finish ends stdout and the files.
func (s *sweep) finish(f *files, failed error) error {
	s.cut = failed != nil
	if s.texts {
		fmt.Fprintln(s.streams.out) // the table follows
	}
	if f != nil && len(s.wrong)+len(s.over) > 0 {
		f.manifest.Exit = exitNo
	}
	var tables []*results.Table
	if s.beside != nil {
		tables = append(tables, s.beside)
	}
	return s.out.finish(f, failed, tables...)
}

// verdict prints what is wrong where people look, below the table, or on stderr
// when stdout is for scripts; and says what that makes of the answer.
func (s *sweep) verdict(err error) error {
	w := s.streams.out
	if s.format != results.FormatTable {
		w = s.streams.err
	}
	for _, i := range slices.Sorted(maps.Keys(s.wrong)) {
		fmt.Fprint(w, s.wrong[i])
	}
	if len(s.over) > 0 {
		fmt.Fprintf(w, "\nover the budget\n  %s\n", strings.Join(s.over, "\n  "))
	}
	err = errors.Join(err, s.unknown)
	switch {
	case len(s.wrong)+len(s.over) == 0 || errors.Is(err, errNo):
		return err
	case err != nil:
		return noError{err}
	}
	return errNo
}
