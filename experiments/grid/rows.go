// SPDX-License-Identifier: Apache-2.0

package grid

import (
	"context"
	_ "embed"
	"maps"
	"math"
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

//go:embed columns.txt
var declared string

// facts are what a row has besides the columns of plan and run.
var facts = results.Declare(declared, "facts", map[string]func(*Measured) any{
	"breaks": func(m *Measured) any { return breaks(m.Point.Table) },
	"kernel": func(m *Measured) any { return m.Point.Table.Arch() != "" },
	"burst_isolated_max": func(m *Measured) any {
		return results.If(m.Modelled != nil && m.HasIsolated, m.IsolatedBurst)
	},
})

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
		out = append(out, results.Col[form.Row]{Column: own, Cell: func(r form.Row) any { return form.Cell(r[c.Name], own.Kind) }})
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
	limit := s.Config.Limit
	if g.form.Grid.Axis(limitAxis) == nil {
		limit = math.MaxInt
	}
	m.Update, err = modelled.Enable(ctx, s.Lab, m.Point.Config, limit)
	return err
}
