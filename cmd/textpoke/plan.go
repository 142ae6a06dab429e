package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/journal"
	"github.com/textpoke/textpoke/sim"
)

func planCommand(c *common) *cobra.Command {
	var g gridFlags
	var tracer scenarioFlags
	var steps bool
	var show string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "what an update would cost, by counting alone",
		Long: "plan counts what enabling every record would cost: batches, rounds, interrupts, memory and\n" +
			"comparisons of a lookup. Nothing is executed. Lists mean the cross product. --scenario adds what a\n" +
			"kernel sends besides, cause by cause, and what each receiver takes." + columnsHelp(sim.PlanTable()) +
			strings.Replace(columnsHelp(ledgerTable()), "Columns:", "Columns with --scenario:", 1),
		Example: "  textpoke plan --arch x86_64 --buffer 128,170,256,dynamic\n" +
			"  textpoke plan --records gen:n=45000,order=sorted --cpus 8,64,512 --format csv\n" +
			"  textpoke plan --arch x86_64 --filter 'vfs_*' --steps\n" +
			"  textpoke plan --arch x86_64 --filter vfs_read --plan my.plan --steps\n" +
			"  textpoke plan --arch x86_64 --scenario function-tracer --cpus 4\n" +
			"  textpoke plan --kernel x86_64-5.0 --scenario function-tracer --without-cause command-lines",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("show") {
				return showPlan(c, show)
			}
			if err := tracer.shape(cmd, &g); err != nil {
				return err
			}
			grid, err := g.grid(cmd, c)
			if err != nil {
				return err
			}
			if grid.Scenarios, err = tracer.scenarios(); err != nil {
				return err
			}
			if steps && (g.resume || g.limits != nil) {
				return errors.New("--steps goes without --resume and --budget: it prints plans, not rows")
			}
			configs, err := c.combinations(cmd.Context(), grid)
			if err != nil {
				return err
			}
			if steps {
				return printSteps(cmd.Context(), c, configs)
			}
			if tracer.on(cmd) {
				return tracer.plan(cmd.Context(), c, configs)
			}
			s := &sweep{
				common: c, flags: &g.sweepFlags, configs: configs, perPoint: 1,
				table: withChosen(sim.PlanTable(), grid), point: count,
			}
			return s.run(cmd.Context())
		},
	}
	g.register(cmd)
	tracer.register(cmd)
	cmd.Flags().BoolVar(&steps, "steps", false, "print the plans themselves")
	cmd.Flags().StringVar(&show, "show", "", "print a built-in `protocol` as a file for --plan, and nothing else: "+strings.Join(shippedPlans(), ", "))
	offer(cmd, "show", shippedPlans())
	return cmd
}

// count makes the row of one combination.
func count(ctx context.Context, c *sim.Config, add func(journal.Row)) (wrong string, err error) {
	job, err := sim.NewJob(*c)
	if err != nil {
		return "", err
	}
	row, err := job.Count(ctx)
	if err != nil {
		return "", err
	}
	return "", addRow(add, sim.PlanTable(), row.Cells())
}

// stepsTable is a table for the steps of plans.
func stepsTable() results.Table {
	return results.Table{Name: "steps", Columns: []results.Column{
		{Name: "run", Doc: "combination, from 0"},
		{Name: "step", Doc: "number of the step, from 1"},
		{Name: "op", Doc: "what it does"},
		{Name: "part", Doc: "what a Write stores of each patch"},
		{Name: "round", Doc: "of a Sync: the how-manieth of its batch"},
		{Name: "patch_from", Doc: "first patch that the step is about; empty where it is about none"},
		{Name: "patch_to", Doc: "one past the last"},
		{Name: "lock", Doc: "that a Lock takes or an Unlock gives back"},
		{Name: "lazy", Doc: "of a Sync: whether it leaves out CPUs in user space"},
	}}
}

// printSteps prints plans step by step: numbered lines for people, a row a step
// for scripts and for the files.
func printSteps(ctx context.Context, c *common, configs []sim.Config) error {
	people := c.format == results.FormatTable
	out := &output{table: stepsTable(), hidden: people}
	return c.each(ctx, out, len(configs), func(i int, o *output) error {
		job, err := sim.NewJob(configs[i])
		if err != nil {
			return err
		}
		plan, err := job.Plan()
		if err != nil {
			return err
		}
		if people {
			if err := writeSteps(c.streams.out, job, plan); err != nil {
				return err
			}
		}
		for n, s := range plan {
			if err := o.add(append([]any{i, n + 1}, stepCells(s)...)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// stepCells is a step's part of its row.
func stepCells(s poke.Step) []any {
	var part, round, from, to, lock, lazy any = results.Empty, results.Empty, results.Empty, results.Empty, results.Empty, results.Empty
	switch s.Op {
	case poke.Write:
		part = s.Part.String()
	case poke.Sync:
		round, lazy = s.Round, s.Lazy
	case poke.Lock, poke.Unlock:
		lock = s.Mutex.String()
	}
	if s.From < s.To {
		from, to = s.From, s.To
	}
	return []any{s.Op.String(), part, round, from, to, lock, lazy}
}

// writeSteps prints one plan for people.
func writeSteps(w io.Writer, j *sim.Job, plan []poke.Step) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n", j)
	for i, s := range plan {
		fmt.Fprintf(b, "%6d  %s\n", i+1, s)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write steps: %w", err)
	}
	return nil
}
