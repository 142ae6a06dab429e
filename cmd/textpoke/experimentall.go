// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/hardware"
)

// triedColumns are the columns of what became of all experiments.
var triedColumns = results.Declare(declared, "tried", map[string]func(tried) any{
	"complete":      func(t tried) any { return t.err == nil },
	"as_it_must_be": func(t tried) any { return t.answer.No == nil },
})

// tried is an experiment that was begun.
type tried struct {
	*experiments.Experiment
	answer *experiments.Answer
	err    error
}

func experimentAll(c *common, all []*experimentFlags) *cobra.Command {
	var only []string
	var w struct{ figures string }
	cmd := newCommand("all", func(cmd *cobra.Command, _ []string) error {
		if c.out == "" {
			return errors.New("--out \"\": want the directory that the experiments' files go to")
		}
		chosen := all
		if len(only) > 0 {
			chosen = nil
		}
		for _, name := range only {
			chosen = append(chosen, all[slices.Index(experimentNames(all), name)])
		}
		return runAll(cmd.Context(), c, divided(c, chosen), w.figures)
	})
	c.prints(cmd, "", triedColumns.Table("all"))
	add(cmd, shardField(c))
	add(cmd, choice.List(&only, "only", "", "experiments to run in place of all", choice.OneOf(experimentNames(all))))
	return declare(cmd, "experiment all", &w)
}

// runAll runs experiments, each into a directory of its own.
func runAll(ctx context.Context, c *common, all []*experimentFlags, figures string) error {
	var pictures *results.Dir
	if figures != "" {
		var err error
		if pictures, err = results.OpenDir(figures); err != nil {
			return fmt.Errorf("--figures: %w", err)
		}
	}
	var done []tried
	kept := experiments.Kept{}
	index := func(w io.Writer) error { return writeIndex(w, done) }
	out := &output{table: triedColumns.Table("all"), documents: []results.Document{{Name: indexName, Write: index}}}
	err := c.each(ctx, out, len(all), func(i int, out *output) error {
		own := *c
		own.out, own.inputs, own.calibrations, own.part = filepath.Join(c.out, all[i].Name), nil, nil, nil
		own.found = kept
		answer, err := all[i].run(ctx, &own, true)
		if errors.Is(err, hardware.ErrNone) {
			c.logger().Warn("left out", zap.String("experiment", all[i].Name), zap.Error(err))
			return nil
		}
		if answer == nil {
			return err
		}
		t := tried{all[i].Experiment, answer, err}
		done = append(done, t)
		if answer.No != nil {
			out.exit = exitNo
		}
		if err == nil {
			t.err = copyPictures(pictures, answer)
		}
		answer.Table, answer.Documents = results.Table{}, nil // they are written, and hold all that was measured
		return errors.Join(out.add(triedColumns.Cells(t)...), t.err)
	})
	if len(done) > 0 {
		err = errors.Join(err, c.writePage(c.out, filepath.Join(c.out, reportName)))
	}
	for _, t := range done {
		if err == nil && t.answer.No != nil {
			return noError{fmt.Errorf("%s: %w", t.Name, t.answer.No)}
		}
	}
	return err
}

// copyPictures copies the pictures that can be scaled into a directory, if there is one.
func copyPictures(pictures *results.Dir, a *experiments.Answer) error {
	for _, d := range a.Documents {
		if pictures == nil || filepath.Ext(d.Name) != ".svg" {
			continue
		}
		if err := pictures.WriteDocument(d); err != nil {
			return err
		}
	}
	return nil
}

// indexName says what came of all experiments, with a section for each.
const indexName, indexSection = "index.md", "\n## "

// writeIndex writes index.md, which says what became of the experiments, for people.
func writeIndex(w io.Writer, done []tried) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "# Experiments\n")
	for _, d := range done {
		fmt.Fprintf(b, "%s%s\n\n%s\n\n", indexSection, d.Name, d.Question)
		if d.err != nil {
			fmt.Fprint(b, "**Cut short.** ")
		}
		fmt.Fprintf(b, "**%s**\n\n", strings.TrimSuffix(d.answer.Headline, "."))
		if d.answer.No != nil {
			fmt.Fprintf(b, "**Not as it must be:** %v\n\n", d.answer.No)
		}
		fmt.Fprintf(b, "[report](%[1]s/report.md), [table](%[1]s/%[1]s.csv)\n\n![%[1]s](%[1]s/%[1]s.svg)\n", d.Name)
	}
	return b.Flush()
}
