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

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/budget"
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
			"exceeded. Limits: "+sim.Limits.Help())
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
	b, err := sim.Limits.Parse(s.budget)
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
	// point makes the rows of one combination, and says what is wrong with them, for
	// people, and which properties that breaks.
	point func(ctx context.Context, c *sim.Config, add func(journal.Row)) (wrong string, broken []string, err error)

	headline func() string // what the rows come to, beside the budget

	out      output
	crew     crew[journal.Entry] // nil: this process
	journal  *journal.Journal
	reused   map[int]journal.Entry
	done     int      // rows, of those that are not reused
	mine     []int    // the points of this shard
	held     int      // rows that were held against the budget
	over     []string // those that are over it
	cost     span     // of what each CPU takes
	isolated span     // of what the isolated CPU takes that takes most

	violations, lost span
	broken           map[string]bool // properties
	cut              bool            // some rows are missing
	unknown          error           // what a row does not know of the budget
	texts            bool            // there was text above the table
	spoken           bool            // rows come with text that tables do not have

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
	if s.employ != nil {
		s.employ(s.work())
		return nil
	}
	f, err := s.openFiles()
	if err != nil {
		return err
	}
	s.wrong, s.broken = map[int]string{}, map[string]bool{}
	s.out = output{c: s.common, table: s.table, keep: f != nil}
	s.out.above = s.answer
	if f != nil {
		if err := s.openJournal(f); err != nil {
			return err
		}
	}
	end, err := s.hire(ctx)
	if err != nil {
		return err
	}
	failed := inOrder(ctx, len(s.mine), s.jobs(), s.make, s.take)
	if failed == nil {
		failed = s.lostPoints(len(s.mine))
	}
	err = s.finish(f, failed)
	err = errors.Join(err, end(err == nil))
	return s.verdict(errors.Join(err, s.closeJournal(err == nil)))
}

// hire finds who does the points. end is to be called when all is written, or never will be.
func (s *sweep) hire(ctx context.Context) (end func(complete bool) error, err error) {
	if s.queue == "" || len(s.reused) == len(s.mine) {
		return func(bool) error { return nil }, nil
	}
	sent, err := s.submit(ctx, s.work().keys, func(n int) bool { _, done := s.reused[s.mine[n]]; return done })
	if err != nil {
		return nil, errors.Join(err, s.closeJournal(false))
	}
	s.crew = away[journal.Entry]{sent}
	return func(complete bool) error { return sent.end(ctx, complete) }, nil
}

// work is the points of this shard.
func (s *sweep) work() work {
	w := work{alone: s.workers == 1, do: parcels(s.entry)}
	for _, i := range s.mine {
		w.keys = append(w.keys, s.key(i))
	}
	return w
}

// entry is what the n-th point of this shard comes to, also where that ends with an error.
func (s *sweep) entry(ctx context.Context, n int) (journal.Entry, error) {
	return s.follow(ctx, n, func(journal.Row) {})
}

// follow is entry, and gives each row as soon as it is there.
func (s *sweep) follow(ctx context.Context, n int, give func(journal.Row)) (e journal.Entry, err error) {
	i := s.mine[n]
	e = journal.Entry{Point: i, Key: s.key(i)}
	e.Wrong, e.Broken, err = s.point(ctx, &s.configs[i], func(row journal.Row) {
		e.Rows = append(e.Rows, row)
		give(row)
	})
	return e, err
}

func (s *sweep) jobs() int {
	switch {
	case s.queue != "":
		return 1 // that waits
	case s.flags.jobs > 0:
		return s.flags.jobs
	case s.workers > 0:
		return s.workers
	}
	return runtime.GOMAXPROCS(0)
}

// make gives the rows of a point, the n-th of this shard, which are made now or taken from the
// journal.
func (s *sweep) make(ctx context.Context, n int, give func(item)) (err error) {
	i := s.mine[n]
	e, again := s.reused[i]
	given := 0
	add := func(row journal.Row) {
		give(item{row, i*s.perPoint + given, again})
		given++
	}
	switch {
	case again:
	case s.crew != nil:
		if e, err = s.crew.do(ctx, n); s.lose(err) {
			return nil // which is told at the end
		}
	default:
		e, err = s.follow(ctx, n, add)
	}
	for _, row := range e.Rows[given:] {
		add(row)
	}
	s.complain(i, e.Wrong, e.Broken)
	if err == nil && !again && s.journal != nil {
		err = s.journal.Add(e)
	}
	return err
}

func (s *sweep) complain(i int, wrong string, broken []string) {
	if wrong == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong[i] = wrong
	for _, property := range broken {
		s.broken[property] = true
	}
}

// take writes a row.
func (s *sweep) take(it item) error {
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
	if !it.reused {
		s.done++
	}
	if !it.reused && s.queue == "" { // which says how far its workers are
		s.overwrite(fmt.Sprintf("%d of %d rows", s.done, (len(s.mine)-len(s.reused))*s.perPoint))
	}
	s.hold(fmt.Sprintf("row %d", it.number+1), it.Cells)
	for name, sum := range map[string]*span{"ipis_per_cpu": &s.cost, "ipis_isolated_max": &s.isolated,
		"violations": &s.violations, "lost_calls": &s.lost} {
		sum.count(s.table.Columns, name, it.Cells)
	}
	return nil
}

// span is the least, the most and the sum of some numbers.
type span struct {
	least, most, sum float64
	known            bool
}

// count counts a row's cell in, where it is a number.
func (r *span) count(columns []results.Column, name string, cells []results.Value) {
	i := slices.IndexFunc(columns, func(c results.Column) bool { return c.Name == name })
	if i < 0 {
		return
	}
	n, is := cells[i].Number()
	if is {
		r.sum += n
	}
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

// hold holds a row against the budget; name is what people call it.
func (s *sweep) hold(name string, cells []results.Value) {
	over, err := s.flags.limits.Exceeded(s.table.Columns, cells)
	if err != nil && s.unknown == nil {
		s.unknown = fmt.Errorf("%s: --%w", name, err)
	}
	s.judged(name, over)
}

// judged notes what a row has too much of.
func (s *sweep) judged(name string, over []budget.Excess) {
	if s.held++; len(over) > 0 {
		s.over = append(s.over, fmt.Sprintf("%s: %s", name, budget.Say(over)))
	}
}

// finish ends stdout and the files.
func (s *sweep) finish(f *folder, failed error) error {
	if s.cut = failed != nil; s.journal != nil {
		s.kept += "; go on with --resume"
	} else {
		s.kept = "--out DIR keeps what is finished, and --resume goes on with it"
	}
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
		fmt.Fprint(w, s.narrowed(s.asTyped(s.wrong[i])))
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
