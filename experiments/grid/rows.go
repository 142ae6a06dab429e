// SPDX-License-Identifier: Apache-2.0

package grid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// Measured is a combination and what it took.
type Measured struct {
	Point
	modelled.Update
}

// planColumns and runColumns are what a row can have, by name.
var (
	planColumns = results.Of(sim.CountedColumns, func(m *Measured) *sim.PlanRow { return &m.PlanRow })
	runColumns  = results.Of(sim.RunColumns, func(m *Measured) *sim.RunRow { return &m.RunRow })
)

// facts are what a row has besides the columns of plan and run.
var facts = slices.Concat(results.Columns[*Measured]{
	{Name: "source", Doc: "table of records", Cell: func(m *Measured) any { return m.Point.Table.Name() }},
	{Name: "summary", Doc: "what the protocol does, in a line", Cell: func(m *Measured) any { return m.Definition().Summary }},
	{Name: "n", Kind: results.Integer, Doc: "records changed", Cell: func(m *Measured) any { return m.Patches }},
	{Name: "breaks", Kind: results.Integer, Doc: "times that an address of the table is lower than the one before it",
		Cell: func(m *Measured) any { return breaks(m.Point.Table) }},
	{Name: "kernel", Kind: results.Boolean, Doc: "whether the table is that of a real kernel",
		Cell: func(m *Measured) any { return m.Point.Table.Arch() != "" }},
	{Name: "online", Kind: results.Integer, Doc: "CPUs that are online", Cell: func(m *Measured) any { return m.Point.Online() }},
	{Name: "masked_rounds", Kind: results.Boolean, Doc: "whether rounds are remote fences, which masked interrupts do not hold up",
		Cell: func(m *Measured) any { return m.Point.Arch.Traits().MaskedRounds }},
}, results.Columns[*Measured]{
	{Name: "calibration", Doc: "machine that times are modelled of",
		Cell: func(m *Measured) any { return m.Machine.Name }},
	{Name: "machine", Doc: "the same, with @ and the number of its CPUs where that is another one",
		Cell: func(m *Measured) any { return m.Machine.String() }},
	{Name: "about", Doc: "what kind of machine that is", Cell: func(m *Measured) any { return m.Machine.Machine }},
	{Name: "calling", Kind: results.Number, Doc: "calls of traced functions a second on a busy CPU",
		Cell: func(m *Measured) any { return m.Point.Calling() }},
}.When(func(m *Measured) bool { return m.Machine.Calibration != nil }), results.Columns[*Measured]{
	{Name: "trap_time_ns", Kind: results.Integer, Doc: "time that all CPUs together spent in traps, modelled",
		Cell: func(m *Measured) any { return int64(m.TrapTime()) }},
	{Name: "burst_isolated_max", Kind: results.Integer,
		Doc:  "most interrupts that an isolated CPU took in one millisecond, modelled",
		Cell: func(m *Measured) any { return results.If(m.HasIsolated, m.IsolatedBurst) }},
}.When(func(m *Measured) bool { return m.Modelled != nil }))

// offered are the columns of the grid's mode, and the facts of a row: a fact replaces a
// column of the same name.
func (g *grid) offered() (out results.Columns[*Measured]) {
	columns := planColumns
	if g.form.Grid.Mode == "run" {
		columns = runColumns
	}
	seen := map[string]bool{}
	for _, c := range slices.Concat(g.more.Facts, facts, columns) {
		if !seen[c.Name] {
			out = append(out, c)
		}
		seen[c.Name] = true
	}
	return out
}

// columns are those that the form declares. Parts that it leaves out come from the column
// of that name.
func (g *grid) columns() (out results.Columns[form.Row], err error) {
	have := map[string]results.Column{}
	for _, c := range g.offered().Table("").Columns {
		have[c.Name] = c
		for _, b := range g.form.Grid.Beside {
			have[b.Name+"."+c.Name] = c
		}
	}
	for _, name := range g.form.Grid.Labels {
		have[name] = results.Column{Name: name}
	}
	for _, c := range g.form.Columns {
		own := c.Column
		from, ok := have[c.Name]
		switch {
		case c.Path != "":
			return nil, g.wrong(c.Line, "column %s: %s: want an expression over the names of columns, in small letters", c.Name, c.Path)
		case c.From != nil:
			for _, name := range c.From.Names() {
				if _, ok := have[name]; !ok {
					return nil, g.wrong(c.Line, "column %s: there is no column %s", c.Name, name)
				}
			}
		case !ok:
			return nil, g.wrong(c.Line, "column %s: there is none of that name, and no = EXPRESSION", c.Name)
		}
		if _, ok := have[c.If]; c.If != "" && !ok {
			return nil, g.wrong(c.Line, "column %s: if %s: there is no such column", c.Name, c.If)
		}
		if own.Kind == "" && c.From == nil {
			own.Kind = from.Kind
		}
		if own.Doc == "" {
			own.Doc = from.Doc
		}
		have[c.Name] = own
		if c.Hidden {
			continue
		}
		out = append(out, results.Col[form.Row]{Name: own.Name, Doc: own.Doc, Kind: own.Kind, Detail: own.Detail, Lead: own.Lead,
			Cell: func(r form.Row) any { return form.Cell(r[c.Name], own.Kind) }})
	}
	return out, nil
}

// row makes the row of a combination.
func (g *grid) row(ctx context.Context, s *experiments.Study[Config, form.Row], p Point) (form.Row, error) {
	row := form.Row{}
	if err := g.fill(ctx, s, p, "", row); err != nil {
		return nil, err
	}
	for _, b := range g.form.Grid.Beside {
		other := p
		for _, a := range b.Axes {
			sets, err := experiments.Sets(g.axes.Named(a.Name), a.Values)
			if err != nil {
				return nil, err
			}
			if err := sets[0](&other.Config); err != nil {
				return nil, err
			}
		}
		if err := g.fill(ctx, s, other, b.Name+".", row); err != nil {
			return nil, err
		}
	}
	maps.Copy(row, p.labels)
	for _, c := range g.form.Columns {
		if c.Late {
			continue
		}
		if c.From != nil {
			v, err := c.From.Eval(row)
			if err != nil {
				return nil, g.wrong(c.Line, "%v", err)
			}
			row[c.Name] = v
		}
		if c.If != "" {
			if v := row[c.If]; v == nil || v == false {
				row[c.Name] = nil
			}
		}
	}
	return row, nil
}

// fill counts or runs a combination, and puts what it took into a row.
func (g *grid) fill(ctx context.Context, s *experiments.Study[Config, form.Row], p Point, prefix string, row form.Row) error {
	m := &Measured{Point: p}
	if err := g.do(ctx, s, m); err != nil {
		return err
	}
	columns := g.offered()
	cells, err := columns.Row(m)
	if err != nil {
		return err
	}
	for i, v := range cells {
		row[prefix+columns[i].Name] = v.Any()
	}
	return nil
}

// do counts a combination, or runs one update that enables everything.
func (g *grid) do(ctx context.Context, s *experiments.Study[Config, form.Row], m *Measured) (err error) {
	if g.form.Grid.Mode == "count" {
		j, err := sim.NewJob(m.Point.Config)
		if err != nil {
			return err
		}
		m.PlanRow, err = j.Count(ctx)
		return err
	}
	if m.Machine.Calibration != nil || m.Point.Engine == sim.TimedEngine {
		m.Update, err = modelled.Enable(ctx, s.Lab, m.Point.Config, s.Config.Limit)
	} else {
		err = g.live(ctx, s, m)
	}
	if err == nil && m.Violations > 0 {
		err = fmt.Errorf("%s: %d properties violated", m.Point.Config.String(), m.Violations)
	}
	return err
}

// live runs an update on this machine's goroutines.
func (g *grid) live(ctx context.Context, s *experiments.Study[Config, form.Row], m *Measured) error {
	c := m.Point.Config
	c.Revision, c.Log = s.Revision, s.Log
	j, err := sim.NewJob(c)
	if err != nil {
		return err
	}
	e, err := sim.NewEngine(j)
	if err != nil {
		return err
	}
	defer e.Close()
	m.RunRow, err = e.Update(ctx, true)
	return errors.Join(err, ctx.Err())
}
