// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/catalogue"
	"github.com/textpoke/textpoke/experiments/grid"
	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// addExperiments adds the commands below experiment.
func addExperiments(c *common, root *cobra.Command) {
	cmd, _, _ := root.Find([]string{"experiment"})
	all := spelling.Each(catalogue.All(), func(e *experiments.Experiment) *experimentFlags { return newExperiment(c, e) })
	cmd.AddCommand(experimentList(c), experimentAll(c, all))
	for _, e := range all {
		cmd.AddCommand(e.cmd)
	}
}

func experimentNames(all []*experimentFlags) []string {
	return spelling.Each(all, func(e *experimentFlags) string { return e.Name })
}

func experimentList(c *common) *cobra.Command {
	list, _ := catalogue.List() // that can be filled is tested
	return c.prints(newCommand("list", func(cmd *cobra.Command, _ []string) error {
		t, err := catalogue.List()
		if err != nil {
			return err
		}
		return c.written(cmd.Context(), &output{table: t})
	}), "", list)
}

// experimentFlags is one experiment with its command, and the request that the flags
// change.
type experimentFlags struct {
	*experiments.Experiment
	cmd     *cobra.Command
	request *experiments.Request
	rows    bool   // people see them, too
	file    string // that it stands in, "" for one of ours
}

// newExperiment makes the command of an experiment.
func newExperiment(c *common, e *experiments.Experiment) *experimentFlags {
	x := &experimentFlags{Experiment: e, request: e.New()}
	x.cmd = newCommand(e.Name, func(cmd *cobra.Command, _ []string) error {
		answer, err := x.run(cmd.Context(), c, c.people() && !x.rows && c.columns == nil)
		if answer != nil {
			c.printFindings(x.Question, answer)
		}
		if err == nil && answer.No != nil {
			err = noError{answer.No}
		}
		return err
	})
	x.cmd.Short, x.cmd.Long = e.Short, e.About
	x.cmd.Example = "  textpoke experiment " + strings.Join(e.Examples, "\n  textpoke experiment ")
	c.prints(x.cmd, "", e.Table())
	flags.Bind(x.cmd.Flags(), x.request.Fields...)
	x.cmd.Flags().Func("shard", "", func(string) error {
		return errors.New("a single experiment is not divided, as its report is made of all of its rows: " +
			"experiment all --shard i/n divides several")
	})
	x.cmd.Flags().Lookup("shard").Hidden = true
	x.cmd.Flags().BoolVar(&x.rows, "rows", false, "also print the rows that the answer is made of")
	for _, f := range x.request.Fields {
		if len(f.Names) > 0 {
			offer(x.cmd, f.Name, func() []string { return f.Names })
		}
	}
	return x
}

// printFindings prints, for people, the answer, the question, and the answer's basis.
func (c *common) printFindings(question string, a *experiments.Answer) {
	if !c.people() {
		return
	}
	paragraphs := append([]string{c.painted("ANSWER: " + a.Headline), question}, strings.Split(a.Opening, "\n\n")...)
	paragraphs = append(paragraphs, a.Basis)
	if c.out == "" {
		paragraphs = append(paragraphs, "--rows prints the rows; --out DIR writes them with report and pictures.")
	}
	var parts []string
	for _, p := range paragraphs {
		if p != "" {
			parts = append(parts, filled(p, cmp.Or(c.width(), results.MaxWidth)))
		}
	}
	fmt.Fprintln(c.streams.out, strings.Join(parts, "\n\n"))
}

// run answers the question: rows to stdout, unless hidden, and with --out all
// files. Of what is cut short it writes what there is.
func (x *experimentFlags) run(ctx context.Context, c *common, hidden bool) (*experiments.Answer, error) {
	x.inputs(c)
	var answer *experiments.Answer
	out := &output{table: x.Table(), hidden: hidden}
	err := c.each(ctx, out, 1, func(_ int, out *output) (err error) {
		lab := experiments.Lab{Seed: c.seeds[0], Revision: built.Revision, Log: c.logger(), Add: out.add, Kept: c.found}
		if c.stderrIsTerminal() {
			lab.Progress = c.overwrite
		}
		answer, err = x.request.Run(ctx, lab)
		if errors.Is(err, experiments.ErrLimits) {
			err = errCut
		}
		if answer != nil {
			if err != nil && !errors.Is(err, errCut) { // rows are missing: no picture has a title that says so, but reports do
				answer.Documents = slices.DeleteFunc(answer.Documents,
					func(d results.Document) bool { return filepath.Ext(d.Name) == ".svg" })
			}
			out.documents = answer.Documents
		}
		return err
	})
	return answer, err
}

// inputs tells the manifest which files are read, and which calibrations times rest
// on, each once.
func (x *experimentFlags) inputs(c *common) {
	seen := map[string]bool{}
	if x.file != "" {
		c.note(x.file)
	}
	for _, f := range x.request.Fields {
		switch v := f.Get().(type) {
		case string:
			if f.IsFile(v) {
				c.note(v)
			}
		case []string:
			c.note(slices.DeleteFunc(slices.Clone(v), func(s string) bool { return !f.IsFile(s) })...)
		case []experiments.Machine:
			for _, m := range v {
				if !seen[m.Name] {
					c.calibrations = append(c.calibrations, m.Calibration)
				}
				seen[m.Name] = true
			}
		}
	}
}

// formEnding is how names of files with experiments end.
const formEnding = ".experiment"

// experimentFile adds the command of an experiment that stands in a file, where the
// command line names one: its flags are known only when it has been read.
func experimentFile(c *common, root *cobra.Command, args []string) error {
	at := slices.Index(args, "experiment")
	parent, _, err := root.Find([]string{"experiment"})
	if at < 0 || at+1 >= len(args) || err != nil || !namesForm(parent, args[at+1]) {
		return nil
	}
	path := args[at+1]
	if strings.ContainsAny(path, " \t") {
		return fmt.Errorf("experiment %q: want a name of a file without blanks", path)
	}
	e, err := grid.Open(path)
	if err != nil {
		return err
	}
	x := newExperiment(c, e)
	x.file = path
	x.cmd.Use = path
	wordArgs(x.cmd)
	parent.AddCommand(x.cmd)
	return nil
}

// namesForm tells whether a word is no command and looks like a file.
func namesForm(parent *cobra.Command, word string) bool {
	if strings.HasPrefix(word, "-") || slices.ContainsFunc(parent.Commands(), func(cmd *cobra.Command) bool {
		return cmd.Name() == word
	}) {
		return false
	}
	info, err := os.Stat(inputs.Place(word))
	return err == nil && !info.IsDir() || strings.HasSuffix(word, formEnding) || strings.ContainsRune(word, '/')
}
