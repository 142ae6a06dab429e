// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/kernels/force"
)

// forceFlags is the flags of force.
type forceFlags struct {
	bug, trace    string
	modules       []string
	runs          int
	limit         time.Duration
	fixed, dryRun bool
}

func kernelForce(c *common) *cobra.Command {
	var f forceFlags
	cmd := newCommand("force IMAGE --bug NAME", func(cmd *cobra.Command, args []string) error {
		return c.force(cmd, args, f)
	})
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.Long = imagesHelp
	c.prints(cmd, "", force.Columns.Table("force"))
	c.prints(cmd, "with --dry-run", force.StepColumns.Table("steps"))
	declare(cmd, "kernel force", &f, strings.Join(force.Names(), ", "), force.Limit)
	cmd.MarkFlagsOneRequired("bug", "trace")
	return cmd
}

// schedule is the case that the flags ask for.
func (f *forceFlags) schedule() (*force.Case, error) {
	name := f.bug
	if f.trace != "" {
		t, err := explore.LoadTrace(f.trace)
		if err != nil {
			return nil, err
		}
		at := slices.Index(t.Model, "--bug") + 1
		if at == 0 || at == len(t.Model) {
			return nil, fmt.Errorf("%s: no case of the museum: a schedule of a kernel is known for %s", f.trace,
				strings.Join(force.Names(), ", "))
		}
		name = t.Model[at]
	}
	if _, err := museum.Named(name); err != nil {
		return nil, err
	}
	return force.Named(name)
}

func (c *common) force(cmd *cobra.Command, args []string, f forceFlags) error {
	schedule, err := f.schedule()
	switch {
	case err != nil:
		return err
	case f.dryRun:
		return printRows(cmd.Context(), c, force.StepColumns, "steps", schedule.Steps)
	case len(args) == 0:
		return fmt.Errorf("usage: %s IMAGE --bug NAME", cmd.CommandPath())
	}
	c.note(append(args, f.modules...)...)
	var rows []force.Row
	var failed error
	for run := 1; run <= f.runs && failed == nil; run++ {
		var row *force.Row
		row, failed = force.Run(cmd.Context(), force.Config{Case: schedule, Image: args[0], Modules: f.modules,
			Limit: f.limit, Tell: func(line string) { fmt.Fprintln(c.streams.err, line) }})
		if failed == nil {
			row.Run = run
			rows = append(rows, *row)
		}
	}
	if len(rows) == 0 {
		return failed
	}
	line, answer := f.answer(rows)
	if failed != nil {
		line = "INCOMPLETE"
	}
	if err := printAnswer(cmd.Context(), c, line, force.Columns, "force", rows); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	return answer
}

// answer is yes where every run is as it was to be.
func (f *forceFlags) answer(rows []force.Row) (line string, err error) {
	want, did := "break as the case says", "broke as the case says"
	if f.fixed {
		want, did = "outlive it", "outlived it"
	}
	for i, r := range rows {
		switch {
		case f.fixed && (r.Outcome == force.Outlived || r.Outcome == force.NotForced && r.Alive):
		case !f.fixed && r.Outcome == force.Broke:
		case r.Outcome == force.NotForced:
			return fmt.Sprintf("INCOMPLETE: run %d could not be forced at step %d", i+1, r.At), errCut
		default:
			return fmt.Sprintf("NO: run %d: the kernel %s; it was to %s", i+1, r.Outcome, want), errNo
		}
	}
	return fmt.Sprintf("YES: in %d of %d runs the kernel %s", len(rows), len(rows), did), nil
}
