package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

func planCommand(c *common) *cobra.Command {
	var g gridFlags
	var steps bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "what an update would cost, by counting alone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			grid, err := g.grid(cmd, c)
			if err != nil {
				return err
			}
			jobs, err := grid.Jobs(cmd.Context())
			if err != nil {
				return err
			}
			if steps {
				return printSteps(cmd.Context(), c, jobs)
			}
			return c.rows(cmd.Context(), sim.PlanTable(), len(jobs), func(i int, o *output) error {
				row, err := jobs[i].Count(cmd.Context())
				if err != nil {
					return err
				}
				return o.add(row.Cells()...)
			})
		},
	}
	g.register(cmd)
	cmd.Flags().BoolVar(&steps, "steps", false, "print the plans themselves")
	return cmd
}

// printSteps prints plans step by step: numbered lines for people, a row a step
// for scripts.
func printSteps(ctx context.Context, c *common, jobs []*sim.Job) error {
	if c.format == results.FormatTable {
		for _, j := range jobs {
			plan, err := j.Plan()
			if err != nil {
				return err
			}
			fmt.Fprintf(c.streams.out, "# %s\n", j)
			for i, s := range plan {
				if _, err := fmt.Fprintf(c.streams.out, "%6d  %s\n", i+1, s); err != nil {
					return err
				}
			}
		}
		return nil
	}
	t := results.Table{Name: "steps", Columns: []results.Column{
		{Name: "run", Doc: "combination, from 0"},
		{Name: "step", Doc: "number of the step, from 1"},
		{Name: "op", Doc: "what it does"},
		{Name: "part", Doc: "what a Write stores of each patch"},
		{Name: "round", Doc: "of a Sync: the how-manieth of its batch"},
		{Name: "patch_from", Doc: "first patch that the step is about"},
		{Name: "patch_to", Doc: "one past the last"},
	}}
	return c.rows(ctx, t, len(jobs), func(i int, o *output) error {
		plan, err := jobs[i].Plan()
		if err != nil {
			return err
		}
		for n, s := range plan {
			var part, round any = results.Empty, results.Empty
			switch s.Op {
			case poke.Write:
				part = s.Part.String()
			case poke.Sync:
				round = s.Round
			}
			if err := o.add(i, n+1, s.Op.String(), part, round, s.From, s.To); err != nil {
				return err
			}
		}
		return nil
	})
}
