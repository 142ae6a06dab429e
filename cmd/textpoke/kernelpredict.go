// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/commands"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// predictFlags are what a prediction is of.
type predictFlags struct {
	actions, of, state, filter, budget, whatIf []string
	cpus, records, here, modules               string
}

func kernelPredict(c *common) *cobra.Command {
	var p predictFlags
	cmd := newCommand("predict IMAGE", func(cmd *cobra.Command, args []string) error {
		if listed(p.actions) {
			return printRows(cmd.Context(), c, predictableColumns, "actions", ledger.Actions())
		}
		return withImage(cmd, args, func(image string) error { return p.predict(cmd.Context(), c, image) })
	})
	cmd.Args = cobra.MaximumNArgs(1)
	c.prints(cmd, "", ledger.PredictColumns.Table("prediction"))
	c.prints(cmd, "with --action list", predictableColumns.Table("actions"))
	declare(cmd, "kernel predict", &p, ledger.StateHelp, ledger.WhatIfHelp(), ledger.PredictLimits().Help())
	declare(cmd, "of", &p)
	offer(cmd, "action", askable)
	offerFiles(cmd, "records", records.BuiltinNames)
	cmd.Flags().Lookup("here").NoOptDefVal = "/"
	return cmd
}

// planned predicts commands of others for plan, which chooses kernel and machine by its own flags.
func (p *predictFlags) planned(ctx context.Context, c *common, asked choice.Request) error {
	kernel := asked.Config["kernel"]
	if len(kernel) != 1 {
		return errors.New("--of wants a --kernel: a name, or an image")
	}
	for name := range chosen(asked, sim.Axes) {
		if !slices.Contains([]string{"kernel", "cpus", "state", "filter", "records"}, name) {
			return fmt.Errorf("--%s goes without --of", name)
		}
	}
	p.cpus = cmp.Or(strings.Join(asked.Config["cpus"], ","), "8")
	p.state, p.filter, p.budget = asked.Config["state"], asked.Config["filter"], asked.Config["budget"]
	p.records = strings.Join(asked.Config["records"], ",")
	return p.predict(ctx, c, kernel[0])
}

// predictableColumns are the columns of actions that can be predicted or measured.
var predictableColumns = results.Declare[ledger.Action](declared, "predictable", nil)

// predict prints what each action sends, and holds it against the budget.
func (p *predictFlags) predict(ctx context.Context, c *common, name string) error {
	roles, err := cpus.ParseRoles(p.cpus)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	if len(p.actions)+len(p.of) == 0 {
		return errNoAction
	}
	limits, err := p.limits()
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	k, err := ledger.Open(name)
	if err != nil {
		return err
	}
	c.note(name)
	if k, err = k.WhatIf(p.whatIf); err != nil {
		return fmt.Errorf("--what-if: %w", err)
	}
	if p.here != "" {
		if p.state, err = k.Here(p.here); err != nil {
			return fmt.Errorf("--here: %w", err)
		}
	}
	table, err := p.table(ctx, c, k)
	if err != nil {
		return err
	}
	courses, err := p.courses(c, k, table)
	if err != nil {
		return err
	}
	var rows []ledger.Predicted
	for _, course := range courses {
		more, err := k.In(p.state).Predict(table, course, roles)
		if errors.Is(err, ledger.ErrNoTable) {
			return fmt.Errorf("%w: name one (--records)", err)
		}
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	j := newJudged(c, ledger.PredictColumns.Table("prediction"), limits)
	j.headed(func() string { return "COST: interrupts of a CPU: " + fewOf(ledger.Most(rows)) })
	err = c.each(ctx, &j.out, len(rows), func(i int, o *output) error {
		if rows[i].Total() {
			j.Judge(rows[i].Name(), rows[i].Over(limits))
		}
		return o.add(ledger.PredictColumns.Cells(rows[i])...)
	})
	return j.verdict(err)
}

// courses are what is predicted: the actions, or what the commands of others do.
func (p *predictFlags) courses(c *common, k *ledger.Kernel, table *records.Table) (all []ledger.Course, err error) {
	for _, of := range p.of {
		course, err := commands.Read(of, commands.Machine{Kernel: k, Table: table, Modules: p.modules})
		if err != nil {
			return nil, fmt.Errorf("--of %w", err)
		}
		for _, what := range course.Unknown {
			c.logger().Warn("not understood, and not counted", zap.String("what", what))
		}
		all = append(all, course)
	}
	if len(all) > 0 {
		return all, nil
	}
	return spelling.Each(p.actions, ledger.Once), nil
}

// limits is the budget; a number alone is one for every CPU.
func (p *predictFlags) limits() (sim.Budget, error) {
	if len(p.budget) == 0 {
		return nil, nil
	}
	items := slices.Clone(p.budget)
	if _, err := strconv.Atoi(items[0]); err == nil {
		items[0] = "ipis=" + items[0]
	}
	return ledger.PredictLimits().Parse(items)
}

// table is the records that actions choose from; nil where there are none.
func (p *predictFlags) table(ctx context.Context, c *common, k *ledger.Kernel) (*records.Table, error) {
	t := k.Own
	name := p.records
	if name == "" && t == nil {
		name = k.Table
	}
	if name != "" {
		var err error
		if t, err = records.Open(ctx, name, records.Options{Arch: k.Arch}); err != nil {
			return nil, err
		}
		c.note(name)
	}
	if len(p.filter) == 0 || t == nil {
		return t, nil
	}
	f, err := records.ParseFilter(p.filter)
	if err != nil {
		return nil, fmt.Errorf("--filter: %w", err)
	}
	if t, err = f.Only(t); err != nil {
		return nil, fmt.Errorf("--filter: %w", err)
	}
	return t, nil
}
