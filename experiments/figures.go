// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"

	"github.com/textpoke/textpoke/experiments/form"
)

// figures holds the published figures that a form declares against the rows that each is about:
// those of one table row by row.
func figures(f *form.Form, of func(table string) form.Rows) (out []Comparison, err error) {
	for _, table := range Distinct(f.Figures, func(fig form.Figure) string { return fig.Of }) {
		for _, row := range of(table) {
			for _, fig := range Where(f.Figures, func(fig form.Figure) bool { return fig.Of == table }) {
				c, about, err := compare(f, &fig, row)
				if err != nil {
					return nil, err
				}
				if about {
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

// compare holds one figure against a row; false where it is not about it.
func compare(f *form.Form, fig *form.Figure, row form.Row) (c Comparison, about bool, err error) {
	if about, err = fig.Where.Holds(row); err != nil || !about {
		return c, false, err
	}
	c.Exact = fig.Exact
	for _, n := range []struct {
		from *form.Expr
		to   *float64
	}{{fig.Published, &c.Published}, {fig.Ours, &c.Ours}, {fig.Low, &c.Low}, {fig.High, &c.High}} {
		if n.from == nil {
			continue
		}
		v, err := n.from.Eval(row)
		if err != nil {
			return c, false, err
		}
		*n.to, _ = v.(float64)
	}
	if c.What, err = f.Fill(fig.What, row); err != nil {
		return c, false, err
	}
	c.Source, err = f.Fill(fig.Source, row)
	return c, true, err
}

// broken says of the first row that is not as the form says it must be what is wrong.
func broken(f *form.Form, rows form.Rows) (no, err error) {
	for _, m := range f.Must {
		for _, row := range rows {
			ok, err := m.Holds.Holds(row)
			if err != nil {
				return nil, err
			}
			if !ok {
				says, err := f.Fill(m.Says, row)
				return errors.New(says), err
			}
		}
	}
	return nil, nil
}
