// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// folder is what a command writes under --out. A nil one writes nothing.
type folder struct {
	dir      *results.Dir
	manifest results.Manifest
}

// openFiles makes the directory and hashes the inputs, before anything runs, so
// that nothing is computed in vain. Without --out it returns nil.
func (c *common) openFiles() (*folder, error) {
	if c.out == "" {
		return nil, nil
	}
	f := &folder{manifest: results.Manifest{
		Version: built.Version, Revision: built.Revision, Args: c.args, Started: c.start, Part: c.part,
	}}
	if len(c.seeds) > 1 {
		f.manifest.Seeds = c.seeds
	} else {
		f.manifest.Seed = &c.seeds[0]
	}
	for i, k := range c.calibrations {
		if i > 0 {
			f.manifest.Calibration += ","
		}
		f.manifest.Calibration += k.Name
		f.manifest.AddSum("calibration "+k.Name, k.Hash())
	}
	for _, path := range c.inputs {
		if err := f.manifest.AddInputFile(path); err != nil {
			return nil, err
		}
	}
	var err error
	f.dir, err = results.OpenDir(c.out)
	return f, err
}

// write writes tables.
func (f *folder) write(tables ...*results.Table) error {
	if f == nil {
		return nil
	}
	for _, t := range tables {
		sum, err := f.dir.WriteCSV(*t)
		if err != nil {
			return err
		}
		f.manifest.AddTable(*t, sum)
	}
	return nil
}

// document writes what stands beside the tables.
func (f *folder) document(docs []results.Document) error {
	if f == nil {
		return nil
	}
	for _, d := range docs {
		if err := f.dir.WriteDocument(d); err != nil {
			return err
		}
		f.manifest.AddDocument(d)
	}
	return nil
}

// close writes the manifest, which comes last.
func (f *folder) close(complete bool) error {
	if f == nil {
		return nil
	}
	f.manifest.Finished, f.manifest.Complete = time.Now(), complete
	return f.dir.WriteManifest(f.manifest)
}

// output is where a command's rows go: to stdout as they finish, and into files
// under --out.
type output struct {
	c      *common
	table  results.Table // for the files
	keep   bool          // there will be files
	hidden bool          // stdout shows something else
	above  func() string // what people read above the table, when all rows are there; nil for nothing
	shown  []int         // columns on stdout
	w      *results.RowWriter
	rows   int
	exit   int // what the rows so far make of the exit code

	documents []results.Document // written under --out when the rows are there
}

// begin starts stdout with the first row: a request that turns out to be wrong
// before that leaves it empty.
func (o *output) begin() error {
	if o.w != nil || o.hidden {
		return nil
	}
	shown, looks, err := o.c.pick(o.table.Columns)
	if err != nil {
		return err
	}
	o.shown = shown
	o.w, err = o.c.look(o.table.Name).NewWriter(o.c.streams.out, o.c.format, looks)
	return err
}

func (o *output) add(cells ...any) error {
	row := results.Table{Columns: o.table.Columns}
	if err := row.Add(cells...); err != nil {
		return err
	}
	return o.addRow(row.Rows[0])
}

func (o *output) addRow(row []results.Value) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.rows++
	if o.keep {
		o.table.Rows = append(o.table.Rows, row)
	}
	if o.hidden {
		return nil
	}
	return o.w.Add(spelling.Each(o.shown, func(c int) results.Value { return row[c] }))
}

// end ends stdout.
func (o *output) end() error {
	if err := o.begin(); err != nil || o.hidden {
		return err
	}
	if o.above != nil && o.c.people() {
		if line := o.above(); line != "" {
			fmt.Fprintf(o.c.streams.out, "%s\n\n", o.c.narrowed(line))
		}
	}
	return o.w.Close()
}

// people tells whether stdout is for people.
func (c *common) people() bool { return c.format == results.FormatTable }

// beside is where people read what a table does not hold: stdout, or stderr where stdout is for scripts.
func (c *common) beside() io.Writer {
	if c.people() {
		return c.streams.out
	}
	return c.streams.err
}

// each makes the rows of n runs and writes them. When it is cut short, the finished rows are
// written, and the manifest says that it is incomplete.
func (c *common) each(ctx context.Context, o *output, n int, row func(i int, o *output) error) error {
	if _, _, err := c.pick(o.table.Columns); err != nil {
		return err
	}
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	o.c, o.keep = c, f != nil
	var failed error
	for i := 0; i < n && failed == nil; i++ {
		if n > 1 {
			c.overwrite(fmt.Sprintf("%d of %d", i, n))
		}
		if failed = ctx.Err(); failed == nil {
			failed = row(i, o)
		}
	}
	return o.finish(f, failed)
}

// finish ends stdout and writes the files, with the rows from before the error failed, if it
// is not nil. Its own error joins failed and those of writing.
func (o *output) finish(f *folder, failed error, more ...*results.Table) error {
	if failed != nil && !sim.Stopped(failed) && o.rows == 0 {
		return failed // nothing was finished
	}
	if sim.Stopped(failed) && o.above == nil {
		o.above = func() string { return o.c.painted("INCOMPLETE") }
	}
	err := o.end()
	if err == nil {
		err = f.write(append([]*results.Table{&o.table}, more...)...)
	}
	if err == nil {
		err = f.document(o.documents)
	}
	if f != nil && f.manifest.Exit == 0 {
		f.manifest.Exit = o.exit
	}
	if err == nil {
		err = f.close(failed == nil)
	}
	if err != nil && sim.Stopped(failed) {
		return err // "what was finished is written" would be wrong
	}
	return errors.Join(failed, err)
}

// written writes the rows that stand in an output's table.
func (c *common) written(ctx context.Context, o *output) error {
	rows := o.table.Rows
	o.table.Rows = nil
	return c.each(ctx, o, len(rows), func(i int, o *output) error { return o.addRow(rows[i]) })
}

// printRows writes a table of rows that are there already.
func printRows[R any](ctx context.Context, c *common, columns results.Columns[R], name string, rows []R) error {
	return printAnswer(ctx, c, "", columns, name, rows)
}

// printAnswer writes rows that are there already, below the answer that they come to; "" for none.
func printAnswer[R any](ctx context.Context, c *common, answer string, columns results.Columns[R], name string, rows []R) error {
	t, err := columns.Fill(name, rows)
	if err != nil {
		return err
	}
	o := &output{table: t}
	if answer != "" {
		o.above = func() string { return c.painted(answer) }
	}
	return c.written(ctx, o)
}

// judged is a table with an answer above it, which its rows are tallied for.
type judged struct {
	*common
	sim.Tally
	out output
}

// newJudged is a table whose headline is what the rows come to, beside the budget.
func newJudged(c *common, table results.Table, limits sim.Budget) *judged {
	return &judged{common: c, Tally: sim.Tally{Limits: limits}, out: output{c: c, table: table}}
}

// headed puts the answer above the table.
func (j *judged) headed(headline func() string) {
	j.out.above = func() string { return j.painted(j.Answer(headline())) }
}

// verdict prints what is wrong where people look, below the table, or on stderr
// when stdout is for scripts; and says what that makes of the answer.
func (j *judged) verdict(err error) error {
	for _, fault := range j.Faults() {
		fmt.Fprint(j.beside(), j.narrowed(j.asTyped(fault)))
	}
	err = errors.Join(err, j.Unknown)
	switch {
	case !j.No() || errors.Is(err, errNo):
		return err
	case err != nil:
		return noError{err}
	}
	return errNo
}
