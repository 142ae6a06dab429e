// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
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
	cmd.Annotations[sweeps] = ""
	declare(cmd, "sweep", s, manyPoints, sim.Limits.Help())
}

// read checks the flags and reads the budget.
func (s *sweepFlags) read(asked choice.Request) (sim.Budget, error) {
	if !asked.Has("budget") {
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
	*judged
	flags    *sweepFlags
	configs  []sim.Config
	perPoint int            // rows of a point
	beside   *results.Table // with further rows, nil for none; its first column is the number of the row
	workers  int            // if --jobs does not say
	again    string         // a warning about reused rows, "" for none
	spoken   bool           // rows come with text that tables do not have
	// point makes the rows of one combination, and says what is wrong with them, for
	// people, and which properties that breaks.
	point func(ctx context.Context, c *sim.Config, add func(points.Row)) (wrong string, broken []string, err error)

	mine  []int // the points of this shard
	had   int   // rows that are reused
	done  int   // rows, of the others
	at    int   // the point of the last row
	nth   int   // rows of it
	texts bool  // there was text above the table
}

// points are the points of this shard.
func (s *sweep) points() *points.Sweep[points.Row] {
	s.mine = s.shard.Points(len(s.configs))
	p := &points.Sweep[points.Row]{Single: s.workers == 1,
		Point: func(ctx context.Context, n int, give func(points.Row)) (string, []string, error) {
			return s.point(ctx, &s.configs[s.mine[n]], give)
		}}
	for _, i := range s.mine {
		p.Keys = append(p.Keys, strings.ToValidUTF8(strings.Join(s.configs[i].Flags(), " "), "?"))
	}
	return p
}

// check refuses what cannot be shown or judged, before anything runs.
func (s *sweep) check() error {
	for i := range s.configs {
		if err := s.Limits.Check(s.out.table, &s.configs[i]); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	_, _, err := s.pick(s.out.table.Columns)
	return err
}

// run makes all rows. It always writes the finished ones. They stay in the folder's
// journal until all are finished.
func (s *sweep) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	s.divide(len(s.configs), s.perPoint)
	all := s.points()
	s.Rows = len(s.mine) * s.perPoint
	f, err := s.openFiles()
	if err != nil {
		return err
	}
	s.out.keep = f != nil
	way := points.Way[points.Row]{Workers: s.jobs(), Take: s.take, Wrong: s.Complain}
	closeKeeper := func(bool) error { return nil }
	if f != nil {
		if way.Keeper, closeKeeper, err = s.keeper(f, all.Keys); err != nil {
			return err
		}
	}
	sent, err := submit(ctx, s.common, all, way.Keeper)
	if err != nil {
		return errors.Join(err, closeKeeper(false))
	}
	if sent != nil {
		way.Await = sent.rows.Await
	}
	lost, failed := all.Run(ctx, way)
	if failed == nil {
		failed = s.notDone(lost, len(s.mine))
	}
	err = s.finish(f, failed)
	err = errors.Join(err, sent.end(ctx, err == nil))
	return s.verdict(errors.Join(err, closeKeeper(err == nil)))
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

// take writes a row.
func (s *sweep) take(n int, row points.Row, kept bool) error {
	if n != s.at {
		s.at, s.nth = n, 0
	}
	number := s.mine[n]*s.perPoint + s.nth // among the rows of all shards, from 0
	s.nth++
	if row.Text != "" {
		s.texts = true
		if _, err := fmt.Fprint(s.streams.out, row.Text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if err := s.out.addRow(row.Cells); err != nil {
		return err
	}
	if s.out.keep {
		for _, cells := range row.Others {
			s.beside.Rows = append(s.beside.Rows, append(points.Cells{results.Int(int64(number))}, cells[1:]...))
		}
	}
	if !kept {
		s.done++
	}
	if !kept && s.queue == "" { // which says how far its workers are
		s.overwrite(fmt.Sprintf("%d of %d rows", s.done, s.Rows-s.had))
	}
	s.Hold(fmt.Sprintf("row %d", number+1), s.out.table.Columns, row.Cells)
	s.Count(s.out.table.Columns, row.Cells)
	return nil
}

// finish ends stdout and the files.
func (s *sweep) finish(f *folder, failed error) error {
	if s.Cut = failed != nil; f != nil {
		s.kept += "; go on with --resume"
	} else {
		s.kept = "--out DIR keeps what is finished, and --resume goes on with it"
	}
	if s.texts {
		fmt.Fprintln(s.streams.out) // the table follows
	}
	if f != nil && s.No() {
		f.manifest.Exit = exitNo
	}
	var tables []*results.Table
	if s.beside != nil {
		tables = append(tables, s.beside)
	}
	return s.out.finish(f, failed, tables...)
}

// process are the flags of a process, which rows do not depend on: they are no part of a request.
var process = append([]string{"out", "resume", "jobs", "yes", "format", "log", "color", "columns"}, queueFlags...)

// ofProcess are the flags that rows do not depend on: a sweep that goes on may have others.
var ofProcess = append([]string{"budget"}, process...)

// keeper keeps rows, and has those that were finished before: in the tables of the directory, where this very sweep was
// carried through, otherwise in a file beside them. The caller calls closed at the end, and tells it whether the
// tables hold all rows.
func (s *sweep) keeper(f *folder, keys []string) (k points.Keeper[points.Row], closed func(complete bool) error, err error) {
	tables := []results.Table{s.out.table}
	if s.beside != nil {
		tables = append(tables, *s.beside)
	}
	run := points.NewRun(&f.manifest, tables, len(keys), ofProcess...)
	s.addPiped(run.Inputs)
	path := filepath.Join(s.common.out, s.out.table.Name+".csv.part")
	if _, err := os.Stat(path); err != nil && s.flags.resume && !s.spoken { // otherwise a later run was interrupted
		part := results.Part{Index: s.shard.Index, Of: s.shard.Of, Points: len(s.configs), Rows: s.perPoint}
		done, err := points.ReadFinished(s.common.out, run, part, ofProcess...)
		if err != nil {
			return nil, nil, err
		}
		if done != nil {
			s.reuse(f, done, len(keys))
			return done, func(bool) error { return nil }, nil
		}
	}
	folder, err := points.OpenFolder(path, run, keys, s.flags.resume)
	if err != nil {
		return nil, nil, err
	}
	s.reuse(f, folder, len(keys))
	return folder, folder.Close, nil
}

// reuse says how many rows are there already.
func (s *sweep) reuse(f *folder, k points.Keeper[points.Row], n int) {
	for i := range n {
		had, _ := k.Have(i)
		s.had += len(had.Items)
	}
	f.manifest.Reused = s.had
	if s.had == 0 {
		return
	}
	text := fmt.Sprintf("textpoke: reused %d of %d rows", s.had, s.Rows)
	if s.again != "" {
		text += "; " + s.again
	}
	fmt.Fprintln(s.streams.err, text)
}

// addPiped adds the contents of tables that came from a pipe, which cannot be read again.
func (s *sweep) addPiped(inputs map[string]string) {
	for i := range s.configs {
		t := s.configs[i].Table
		name := filepath.ToSlash(t.Name())
		if inputs[name] != "" || strings.HasPrefix(name, "gen:") || isBuiltin(name) {
			continue
		}
		h := sha256.New()
		for r := range t.Len() {
			fmt.Fprintf(h, "%x %q %q\n", t.Addr(r), t.Symbol(r), t.Module(r))
		}
		inputs[name] = hex.EncodeToString(h.Sum(nil))
	}
}
