package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/catalogue"
	"github.com/textpoke/textpoke/experiments/mutations"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
)

func experimentCommand(c *common) *cobra.Command {
	var all []*experimentFlags
	for _, e := range catalogue.All() {
		all = append(all, newExperiment(c, e))
	}
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "questions with all it takes to answer them again (list, all, or one of them)",
	}
	cmd.AddCommand(experimentList(c), experimentAll(c, all))
	for _, e := range all {
		cmd.AddCommand(e.cmd)
	}
	return cmd
}

func experimentNames(all []*experimentFlags) (names []string) {
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}

func experimentList(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "the experiments, and what each of them asks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := catalogue.List()
			if err != nil {
				return err
			}
			return c.whole(cmd.Context(), t)
		},
	}
}

// experimentFlags is one experiment with its command and what runs it, with the
// values that the flags have by then.
type experimentFlags struct {
	*experiments.Experiment
	cmd   *cobra.Command
	asRun experiments.Run
}

// newExperiment makes the command of an experiment.
func newExperiment(c *common, e *experiments.Experiment) *experimentFlags {
	x := &experimentFlags{Experiment: e}
	x.cmd = &cobra.Command{
		Use:     e.Name,
		Short:   e.Short,
		Long:    e.About + columnsHelp(e.Table()),
		Example: "  textpoke experiment " + strings.Join(e.Examples, "\n  textpoke experiment "),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := x.run(cmd.Context(), c, false)
			if err == nil && answer.No != nil {
				err = noError{answer.No}
			}
			return err
		},
	}
	if e.Flags == nil {
		x.asRun = checkerFlags(c, x.cmd)
	} else {
		x.asRun = e.Flags(x.cmd.Flags())
		x.cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(interface{ Names() []string }); ok {
				offer(x.cmd, f.Name, v.Names())
			}
		})
	}
	return x
}

// run answers the question: rows to stdout, unless hidden, and with --out all
// files. Of what is cut short it writes what there is.
func (x *experimentFlags) run(ctx context.Context, c *common, hidden bool) (*experiments.Answer, error) {
	if err := refuseEmpty(x.cmd, "published", "published-runs"); err != nil {
		return nil, err
	}
	for _, flag := range []string{"records", "published", "published-runs", "kallsyms"} { // those that name files
		f := x.cmd.Flags().Lookup(flag)
		if f == nil {
			continue
		}
		if v, ok := f.Value.(pflag.SliceValue); ok {
			c.note(v.GetSlice()...)
		} else {
			c.note(f.Value.String())
		}
	}
	x.restOn(c)
	var answer *experiments.Answer
	out := &output{table: x.Table(), hidden: hidden}
	err := c.each(ctx, out, 1, func(_ int, out *output) (err error) {
		lab := &experiments.Lab{Seed: c.seed, Revision: built.Revision, Log: c.logger(), Add: out.add}
		answer, err = x.asRun(ctx, lab)
		if answer != nil {
			if err != nil && !errors.Is(err, errCut) { // rows are missing, and not only what they say
				answer.Documents = slices.DeleteFunc(answer.Documents, isPicture)
			}
			out.documents = answer.Documents
		}
		return err
	})
	return answer, err
}

// isPicture tells whether a document is one. A picture's title says what the rows
// show: of an answer that was cut short there is none, only the rows and the report,
// which says what is missing.
func isPicture(d results.Document) bool {
	return slices.Contains([]string{".svg", ".png"}, filepath.Ext(d.Name))
}

// restOn tells the manifest which calibrations times rest on, each once.
func (x *experimentFlags) restOn(c *common) {
	f := x.cmd.Flags().Lookup("calibration")
	if f == nil {
		return
	}
	machines, ok := f.Value.(*experiments.Values[experiments.Calibrated])
	if !ok {
		return
	}
	seen := map[string]bool{}
	for _, m := range machines.Get() {
		if !seen[m.Name] {
			c.calibrations = append(c.calibrations, m.Calibration)
		}
		seen[m.Name] = true
	}
}

// checkerFlags is the flags of the experiment that puts protocols to the checker,
// which are those of check.
func checkerFlags(c *common, cmd *cobra.Command) experiments.Run {
	var machine machineFlags
	var effort effortFlags
	machine.register(cmd, poke.Names(), cpus.FetchNames())
	effort.register(cmd)
	return func(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
		o, err := effort.options()
		if err != nil {
			return nil, err
		}
		g, err := machine.grid()
		if err != nil {
			return nil, err
		}
		questions, err := mutations.Questions(*g)
		if err != nil {
			return nil, err
		}
		a, cut := &mutations.Answer{Asked: len(questions)}, error(nil)
		for _, q := range questions {
			if err := ctx.Err(); err != nil {
				return a.Answer(), err
			}
			row, err := c.answer(ctx, q, o)
			if err != nil {
				return a.Answer(), err
			}
			a.Rows = append(a.Rows, row)
			if row.Verdict == explore.Incomplete {
				cut = errCut
			}
			if err := lab.Add(check.Columns.Cells(&row)...); err != nil {
				return a.Answer(), err
			}
		}
		return a.Answer(), cut
	}
}
