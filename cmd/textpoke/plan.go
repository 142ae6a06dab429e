// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
	"github.com/textpoke/textpoke/sim"
)

// planFlags is the flags of plan.
type planFlags struct {
	gridFlags
	steps bool
	show  string
}

func newPlan() *planFlags { return &planFlags{gridFlags: gridFlags{uses: sim.UsePlan}} }

func planCommand(c *common) *cobra.Command {
	p, of := newPlan(), &predictFlags{}
	cmd := newCommand("plan", func(cmd *cobra.Command, _ []string) error {
		if c.asked.Has("of") {
			return of.planned(cmd.Context(), c, c.asked)
		}
		return p.run(cmd.Context(), c, c.asked)
	})
	c.prints(cmd, "", sim.CountedColumns.Table("plan"))
	c.prints(cmd, "with --scenario", sim.LedgerColumns.Table("ledger"))
	c.prints(cmd, "with --of", ledger.PredictColumns.Table("prediction"))
	c.prints(cmd, "with --steps", stepColumns.Table("steps"))
	p.register(cmd, c)
	add(cmd, p.fields()...)
	declare(cmd, "plan", p, strings.Join(spelling.Each(poke.ShippedPlans(), func(p poke.ShippedPlan) string { return p.Name }), "|"))
	return declare(cmd, "of", of)
}

func (p *planFlags) run(ctx context.Context, c *common, asked choice.Request) error {
	if asked.Has("show") {
		return showPlan(c, p.show)
	}
	s, err := p.sweep(ctx, c, asked)
	switch {
	case err != nil:
		return err
	case p.steps:
		return printSteps(ctx, c, s.configs)
	case asked.Has("scenario"):
		return printLedger(ctx, c, s.configs, p.limits)
	}
	return s.run(ctx)
}

// sweep is what a request asks for.
func (p *planFlags) sweep(ctx context.Context, c *common, asked choice.Request) (*sweep, error) {
	grid, err := p.grid(asked, c)
	if err != nil {
		return nil, err
	}
	configs, err := c.combinations(ctx, grid)
	if err != nil {
		return nil, err
	}
	s := &sweep{
		judged: newJudged(c, withChosen(sim.CountedColumns.Table("plan"), grid), p.limits), flags: &p.sweepFlags, configs: configs,
		perPoint: 1, point: count,
	}
	s.headed(s.Costs)
	return s, nil
}

// count makes the row of one combination.
func count(ctx context.Context, c *sim.Config, add func(points.Row)) (wrong string, broken []string, err error) {
	job, err := sim.NewJob(*c)
	if err != nil {
		return "", nil, err
	}
	row, err := job.Count(ctx)
	if err != nil {
		return "", nil, err
	}
	cells, err := sim.CountedColumns.Row(&row)
	if err == nil {
		add(points.Row{Cells: cells})
	}
	return "", nil, err
}

// planStep is one step of one combination's plan, both counted from 0.
type planStep struct {
	poke.Step
	run, n int
}

// Writes, Syncs, Locks and Patches tell which columns a step has.
func (s planStep) Writes() bool  { return s.Op == poke.Write }
func (s planStep) Syncs() bool   { return s.Op == poke.Sync }
func (s planStep) Locks() bool   { return s.Op == poke.Lock || s.Op == poke.Unlock }
func (s planStep) Patches() bool { return s.From < s.To }

// stepColumns are the columns of a table of the steps of plans.
var stepColumns = results.Declare(declared, "step", map[string]func(planStep) any{
	"step": func(s planStep) any { return s.n + 1 },
})

// printSteps prints plans step by step: numbered lines for people, a row a step
// for scripts and for the files.
func printSteps(ctx context.Context, c *common, configs []sim.Config) error {
	people := c.people()
	out := &output{table: stepColumns.Table("steps"), hidden: people}
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
			if err := c.writeSteps(job, plan); err != nil {
				return err
			}
		}
		for n, s := range plan {
			if err := o.add(stepColumns.Cells(planStep{s, i, n})...); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeSteps prints one plan for people.
func (c *common) writeSteps(j *sim.Job, plan []poke.Step) error {
	b := bufio.NewWriter(c.streams.out)
	for line := range strings.SplitSeq(results.Folded(j.String(), cmp.Or(c.width(), results.MaxWidth)-2, 0), "\n") {
		fmt.Fprintf(b, "# %s\n", line)
	}
	if path := j.StatedPath(); path != "" {
		fmt.Fprintf(b, "%s\n", path)
	}
	for i, s := range plan {
		fmt.Fprintf(b, "%6d  %s\n", i+1, s)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write steps: %w", err)
	}
	return nil
}

// fewOf are the first few of what there is to say.
func fewOf(said []string) string {
	const few = 4
	if len(said) > few {
		return fmt.Sprintf("%s, and %d more", strings.Join(said[:few], ", "), len(said)-few)
	}
	return strings.Join(said, ", ")
}

// printLedger prints the rounds that each combination sends, cause by cause in their order,
// and the interrupts that each receiver takes.
func printLedger(ctx context.Context, c *common, configs []sim.Config, limits sim.Budget) error {
	table := sim.LedgerColumns.Table("ledger")
	var all []*sim.Switch
	for i := range configs {
		if err := limits.Check(table, &configs[i]); err != nil {
			return fmt.Errorf("--%w", err)
		}
		both, err := sim.Switches(&configs[i])
		if err != nil {
			return err
		}
		all = append(all, both...)
	}
	var said []string
	j := newJudged(c, table, limits)
	j.headed(func() string { return "COST: interrupts of every other CPU: " + fewOf(said) })
	err := c.each(ctx, &j.out, len(all), func(i int, o *output) error {
		rows, err := all[i].Ledger(ctx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			cells, err := sim.LedgerColumns.Row(r)
			if err != nil {
				return err
			}
			if r.Total() {
				said = append(said, r.Said())
				j.Hold(r.Said(), table.Columns, cells)
			}
			if err := o.addRow(cells); err != nil {
				return err
			}
		}
		return nil
	})
	return j.verdict(err)
}

// showPlan prints a built-in protocol as a file: what one's own begins as.
func showPlan(c *common, name string) error {
	p, err := spelling.Find("--show", name, poke.ShippedPlans(), func(p poke.ShippedPlan) string { return p.Name })
	if err == nil {
		_, err = fmt.Fprintf(c.streams.out, "%s%s", p.Text, poke.DefaultPath())
	}
	return err
}
