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

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
)

// allTable is a table for what became of all experiments.
func allTable() results.Table {
	return results.Table{Name: "all", Columns: []results.Column{
		{Name: "name", Doc: "the experiment, and the directory that its files are in"},
		{Name: "complete", Doc: "whether it was carried through"},
		{Name: "as_it_must_be", Doc: "whether nothing came out that must not"},
		{Name: "answer", Doc: "the answer in one line"},
	}}
}

func experimentAll(c *common, all []*experimentFlags) *cobra.Command {
	var only []string
	var figures string
	cmd := &cobra.Command{
		Use:   "all",
		Short: "runs every experiment, each into a directory of its own below --out",
		Long: "all runs every experiment with the defaults of its flags. --out DIR is needed: each\n" +
			"experiment writes into DIR/NAME what it writes by itself, and DIR/index.md says what\n" +
			"came out. Every table and figure in docs/ and in the README is made like that." + columnsHelp(allTable()),
		Example: "  textpoke experiment all --out experiments\n" +
			"  textpoke experiment all --out experiments --figures docs/figures",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.out == "" {
				return errors.New("--out \"\": want the directory that the experiments' files go to")
			}
			chosen, err := choose(all, only)
			if err != nil {
				return err
			}
			return runAll(cmd.Context(), c, chosen, figures)
		},
	}
	names(cmd, &only, "only", nil, experimentNames(all), "experiments to run in place of all: ")
	cmd.Flags().StringVar(&figures, "figures", "", "also put each experiment's SVG into this `directory`")
	return cmd
}

// choose finds the experiments that are named; all, without names.
func choose(all []*experimentFlags, only []string) (out []*experimentFlags, err error) {
	if len(only) == 0 {
		return all, nil
	}
	valid := experimentNames(all)
	return namedList("only", only, valid, func(name string) (*experimentFlags, error) {
		return all[slices.Index(valid, name)], nil
	})
}

// runAll runs experiments, each into a directory of its own.
func runAll(ctx context.Context, c *common, all []*experimentFlags, figures string) error {
	var shelf *results.Dir
	if figures != "" {
		var err error
		if shelf, err = results.OpenDir(figures); err != nil {
			return fmt.Errorf("--figures: %w", err)
		}
	}
	index := &experimentIndex{}
	out := &output{table: allTable(), documents: []results.Document{{Name: "index.md", Write: index.write}}}
	err := c.each(ctx, out, len(all), func(i int, out *output) error {
		own := *c
		own.out, own.inputs, own.calibrations = filepath.Join(c.out, all[i].Name), nil, nil
		answer, err := all[i].run(ctx, &own, true)
		if answer == nil {
			return err
		}
		index.add(all[i].Experiment, answer, err)
		if err == nil {
			err = shelve(shelf, answer)
		}
		return errors.Join(out.add(all[i].Name, err == nil, answer.No == nil, answer.Headline), err)
	})
	if err == nil {
		err = index.no()
	}
	return err
}

// shelve puts the pictures that can be scaled on a shelf, if there is one.
func shelve(shelf *results.Dir, a *experiments.Answer) error {
	for _, d := range a.Documents {
		if shelf == nil || filepath.Ext(d.Name) != ".svg" {
			continue
		}
		if err := shelf.WriteDocument(d); err != nil {
			return err
		}
	}
	return nil
}

// experimentIndex is what became of the experiments, for people.
type experimentIndex struct {
	done []indexed
}

// indexed is one that was begun.
type indexed struct {
	*experiments.Experiment
	answer *experiments.Answer
	err    error
}

func (x *experimentIndex) add(e *experiments.Experiment, a *experiments.Answer, err error) {
	x.done = append(x.done, indexed{e, a, err})
}

// no is the answer no of any of them.
func (x *experimentIndex) no() error {
	for _, d := range x.done {
		if d.answer.No != nil {
			return noError{fmt.Errorf("%s: %w", d.Name, d.answer.No)}
		}
	}
	return nil
}

// write writes index.md.
func (x *experimentIndex) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "# Experiments\n")
	for _, d := range x.done {
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n", d.Name, d.Question)
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
