package main

import (
	"context"
	"time"

	"github.com/textpoke/textpoke/results"
)

// output is where a command's rows go: to stdout as they finish, and into files
// under --out.
type output struct {
	w     results.RowWriter
	table results.Table
	keep  bool // for the files
}

func (o *output) add(cells ...any) error {
	if o.keep {
		if err := o.table.Add(cells...); err != nil {
			return err
		}
	}
	return o.w.Add(cells...)
}

// rows makes n rows and writes them; more tables may be filled meanwhile and are
// written beside. When it is cut short, what was finished is written, and the
// manifest says that it is incomplete.
func (c *common) rows(ctx context.Context, t results.Table, n int, row func(i int, o *output) error, more ...*results.Table) error {
	var dir *results.Dir
	if c.out != "" {
		var err error
		if dir, err = results.OpenDir(c.out); err != nil {
			return err
		}
	}
	w, err := results.NewWriter(c.streams.out, c.format, t.Columns)
	if err != nil {
		return err
	}
	o := &output{w: w, table: t, keep: dir != nil}
	var failed error
	for i := 0; i < n && failed == nil; i++ {
		if failed = ctx.Err(); failed == nil {
			failed = row(i, o)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if dir != nil {
		if err := c.files(dir, o, failed == nil, more); err != nil {
			return err
		}
	}
	return failed
}

// files writes the tables and the manifest.
func (c *common) files(dir *results.Dir, o *output, complete bool, more []*results.Table) error {
	m := results.Manifest{
		Version: version, Revision: revision(), Args: c.args, Seed: &c.seed,
		Started: c.start, Finished: time.Now(), Complete: complete,
	}
	for _, path := range c.inputs {
		if err := m.AddInputFile(path); err != nil {
			return err
		}
	}
	for _, t := range append([]*results.Table{&o.table}, more...) {
		if err := dir.WriteCSV(*t); err != nil {
			return err
		}
		m.AddTable(*t)
	}
	return dir.WriteManifest(m)
}
