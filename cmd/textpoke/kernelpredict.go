// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

// predictFlags are what a prediction is of.
type predictFlags struct {
	actions, state, filter []string
	cpus, records, here    string
	budget                 int
}

func kernelPredict(c *common) *cobra.Command {
	var p predictFlags
	cmd := &cobra.Command{
		Use: "predict IMAGE", Short: "what an action interrupts on a kernel, by its image alone", Args: cobra.MaximumNArgs(1),
		Long: "predict replays what a kernel does when something is switched on and off again, with the tables of its\n" +
			"image: cause by cause, and what CPUs of each role take in each row of /proc/interrupts. IMAGE may also be\n" +
			"what inspect --ledger wrote. A mechanism that is not understood is an error that names it. With --budget,\n" +
			"the exit code is 1 where a CPU takes more.",
		Example: "  textpoke kernel predict /boot/vmlinuz --action function-tracer --cpus busy=6,isolated=2\n" +
			"  textpoke kernel predict vmlinuz --action tracepoint:sched_switch --state recording=on --budget 10\n" +
			"  textpoke kernel predict --action list",
		RunE: func(cmd *cobra.Command, args []string) error {
			if listed(p.actions) {
				return printRows(cmd.Context(), c, predictableColumns, "actions", ledger.Actions())
			}
			if err := refuseEmpty(cmd, "here"); err != nil {
				return err
			}
			return withImage(cmd, args, func(image string) error { return p.predict(cmd.Context(), c, image) })
		},
	}
	c.prints(cmd, "", predictColumns.Table("prediction"))
	c.prints(cmd, "with --action list", predictableColumns.Table("actions"))
	f := cmd.Flags()
	f.StringSliceVar(&p.actions, "action", []string{string(ledger.FunctionTracer)},
		"`list` of what is switched, NAME or NAME:ARGUMENT; \"list\" prints what there is")
	f.StringVar(&p.cpus, "cpus", "8", "the machine's CPUs: a `number`, or a list of roles such as busy=6,isolated=2")
	f.StringSliceVar(&p.state, "state", nil, "`list` of what is so already: "+ledger.StateHelp)
	f.StringVar(&p.here, "here", "", "read what is so already from the running machine, in place of --state: keys, modules, and in\n"+
		"tracefs options, tracers, probes and events; --here=`directory`: from a copy of its files")
	f.Lookup("here").NoOptDefVal = "/"
	cmd.MarkFlagsMutuallyExclusive("here", "state")
	f.StringArrayVar(&p.filter, "filter", nil, "`functions` that may be traced, in the kernel's syntax; again for more")
	f.StringVar(&p.records, "records", "", "`table` of records in place of the image's (textpoke records list)")
	f.IntVar(
		&p.budget,
		"budget",
		0,
		"interrupts that a CPU may take for one switch, a `number`; more, and the exit code is 1",
	)
	return cmd
}

// predictableColumns are the columns of what can be predicted, or measured.
var predictableColumns = results.Columns[ledger.Action]{
	{Name: "action", Doc: "the name", Cell: func(a ledger.Action) any { return a.Name }},
	{Name: "argument", Doc: "what stands behind a colon",
		Cell: func(a ledger.Action) any { return results.OrEmpty(a.Argument) }},
	{Name: "required", Kind: results.Boolean, Doc: "whether it must stand there",
		Cell: func(a ledger.Action) any { return results.If(a.Argument != "", a.Must) }},
	{Name: "meaning", Doc: "what is switched", Cell: func(a ledger.Action) any { return a.Doc }},
}

// predicted is one line of a prediction: a cause, or what a CPU of a role takes in all.
type predicted struct {
	kernel            *ledger.Kernel
	action, direction string
	line              *ledger.Line // nil for a total
	row, role         string
	interrupts        int
	within            ledger.Range // in which they lie
}

var predictColumns = results.Columns[predicted]{
	{Name: "arch", Doc: "instruction set", Detail: true, Cell: func(p predicted) any { return p.kernel.Arch }},
	{Name: "release", Doc: "of the kernel", Detail: true, Cell: func(p predicted) any { return p.kernel.Release }},
	{Name: "action", Doc: "what is switched", Cell: func(p predicted) any { return p.action }},
	{Name: "direction", Doc: "enable or disable", Cell: func(p predicted) any { return p.direction }},
	{Name: "part", Doc: "of the action's work; total: of all",
		Cell: func(p predicted) any { return p.cause(func(l *ledger.Line) any { return l.Part }, "total") }},
	{Name: "cause", Doc: "of the interrupts; empty for a total",
		Cell: func(p predicted) any {
			return p.cause(func(l *ledger.Line) any { return l.Cause.String() }, results.Empty)
		}},
	{Name: "pokes", Kind: results.Integer, Doc: "keys, sites, calls or records; empty for a total",
		Cell: func(p predicted) any { return p.cause(func(l *ledger.Line) any { return l.Pokes }, results.Empty) }},
	{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware", Cell: func(p predicted) any { return p.row }},
	{Name: "role", Doc: "receiver: every other online CPU; in a total, CPUs of a role, and the patcher's own share",
		Cell: func(p predicted) any { return p.role }},
	{Name: "interrupts", Kind: results.Integer,
		Doc: "that each of them takes", Cell: func(p predicted) any { return p.interrupts }},
	{Name: "least", Kind: results.Integer, Doc: "the lower end of what was seen, or what the code allows",
		Cell: func(p predicted) any { return p.within.Least }},
	{Name: "most", Kind: results.Integer, Doc: "and the upper end; empty for \"or more\": the number is a lower bound",
		Cell: func(p predicted) any { return results.If(!p.within.OrMore, p.within.Most) }},
	{Name: "basis", Doc: "how it is known: image (its tables), rule (its mechanism), assumed (no file tells); of a total: \"or more\" for a lower bound",
		Cell: func(p predicted) any {
			return p.cause(func(l *ledger.Line) any { return string(l.Basis) }, results.OrEmpty(p.bound()))
		}},
	{Name: "source", Detail: true, Doc: "what of the kernel it follows from",
		Cell: func(p predicted) any {
			return p.cause(func(l *ledger.Line) any { return results.OrEmpty(l.Source) }, results.Empty)
		}},
}

// bound says that a number is a lower bound.
func (p predicted) bound() string {
	if p.within.OrMore {
		return "or more"
	}
	return ""
}

// cause is a cell of a line, or the one of a total.
func (p predicted) cause(of func(*ledger.Line) any, total any) any {
	if p.line == nil {
		return total
	}
	return of(p.line)
}

// predict prints what each action sends, and holds it against the budget.
func (p *predictFlags) predict(ctx context.Context, c *common, name string) error {
	roles, err := cpus.ParseRoles(p.cpus)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	if p.budget < 0 {
		return fmt.Errorf("--budget %d: want 0 or more", p.budget)
	}
	k, err := ledger.Open(name)
	if err != nil {
		return err
	}
	c.note(name)
	if p.here != "" {
		if p.state, err = k.Here(p.here); err != nil {
			return fmt.Errorf("--here: %w", err)
		}
	}
	table, err := p.table(ctx, c, k)
	if err != nil {
		return err
	}
	var rows []predicted
	for _, action := range p.actions {
		more, err := p.both(k, table, action, roles)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	t, err := predictColumns.Fill("prediction", rows)
	if err != nil {
		return err
	}
	cells := t.Rows
	t.Rows = nil
	out := &output{table: t, above: func() string { return c.painted(p.answer(rows)) }}
	if err := c.each(ctx, out, len(cells), func(i int, o *output) error { return o.addRow(cells[i]) }); err != nil {
		return err
	}
	if i := slices.IndexFunc(rows, func(r predicted) bool { return p.over(r) }); p.budget > 0 && i >= 0 {
		return noError{
			fmt.Errorf("--budget %d: %s, %s: a CPU takes %d in row %s", p.budget, rows[i].action, rows[i].direction,
				rows[i].interrupts, rows[i].row),
		}
	}
	return nil
}

// answer is what the CPUs take that take most, and whether that is within the budget.
func (p *predictFlags) answer(rows []predicted) string {
	var said []string
	most, over := map[string]int{}, false
	for _, r := range rows {
		if r.line == nil {
			what := fmt.Sprintf("to %s %s (%s)", r.direction, r.action, r.row)
			if _, known := most[what]; !known {
				said = append(said, what)
			}
			most[what], over = max(most[what], r.interrupts), over || p.over(r)
		}
	}
	for i, what := range said {
		said[i] = fmt.Sprintf("%d %s", most[what], what)
	}
	line := "COST: interrupts of a CPU: " + fewOf(said)
	switch {
	case p.budget > 0 && over:
		line = "NO: over the budget; " + line
	case p.budget > 0:
		line = "YES: within the budget; " + line
	}
	return line
}

func (p *predictFlags) over(r predicted) bool { return r.line == nil && r.interrupts > p.budget }

// table is the records that actions choose of; nil where nobody has any.
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
	var raw []records.Raw
	for _, i := range f.Match(t) {
		raw = append(raw, records.Raw{Addr: t.Addr(i), Symbol: t.Symbol(i), Module: t.Module(i)})
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("--filter %q: no record matches", strings.Join(p.filter, " "))
	}
	return records.New(t.Name(), k.Arch, raw)
}

// both switches an action on and off.
func (p *predictFlags) both(
	k *ledger.Kernel,
	t *records.Table,
	action string,
	roles []cpus.Role,
) (out []predicted, err error) {
	r, err := k.In(p.state).NewReplay(t)
	if err != nil {
		return nil, err
	}
	for i, direction := range []string{"enable", "disable"} {
		lines, err := r.Switch(action, i == 0)
		if errors.Is(err, ledger.ErrNoTable) {
			return nil, fmt.Errorf("%w: name one (--records)", err)
		}
		if err != nil {
			return nil, err
		}
		of := predicted{kernel: k, action: action, direction: direction}
		for j := range lines {
			if lines[j].Rounds() > 0 {
				line := of
				line.line, line.row, line.role, line.interrupts = &lines[j], lines[j].Row, "receiver", lines[j].Rounds()
				line.within.Add(&lines[j].Entry)
				out = append(out, line)
			}
		}
		out = append(out, totals(of, lines, roles)...)
	}
	return out, nil
}

// totals is what a CPU of each role takes in each row.
func totals(of predicted, lines []ledger.Line, roles []cpus.Role) (out []predicted) {
	patcher := cpus.Housekeeper(roles)
	for _, row := range of.kernel.Rows() {
		sum, within := 0, ledger.Range{}
		for i := range lines {
			if l := &lines[i]; l.Row == row.Name {
				sum += l.Rounds()
				within.Add(&l.Entry)
			}
		}
		if sum == 0 && !row.Modelled {
			continue // others count there too: nothing is not said of it
		}
		seen := map[cpus.Role]bool{}
		for i, role := range roles {
			t := of
			t.row, t.role = row.Name, role.String()
			switch {
			case i == patcher:
				t.role = "patcher"
				if t.interrupts = ledger.OwnShare(row, sum); t.interrupts > 0 {
					t.within = within
				}
			case seen[role] || role == cpus.Offline:
				continue
			default:
				seen[role] = true
				t.interrupts, t.within = sum, within
			}
			out = append(out, t)
		}
	}
	return out
}
