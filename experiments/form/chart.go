// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// Draw draws the rows; say fills in a title or a label.
func (c *Chart) Draw(rows Rows, say func(*Text) (string, error)) (*plots.Chart, error) {
	out := &plots.Chart{X: plots.Axis{Log: c.X.Log}, Y: plots.Axis{Log: c.Y.Log}, Alone: c.Alone}
	for _, t := range []struct {
		text *Text
		to   *string
	}{{c.Title, &out.Title}, {c.Subtitle, &out.Subtitle}, {c.X.Label, &out.X.Label}, {c.Y.Label, &out.Y.Label}} {
		var err error
		if *t.to, err = say(t.text); err != nil {
			return nil, err
		}
	}
	rows, err := rows.where(c.Where)
	if err != nil {
		return nil, err
	}
	if c.Only != "" {
		is, err := say(c.Is)
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(r Row) bool { return Said("", r[c.Only]) != is })
	}
	if rows, err = rows.sorted(c.Sort); err != nil {
		return nil, err
	}
	d := drawing{chart: c, out: out, index: map[string]int{}}
	for _, r := range rows { // texts stand in the order of the rows, whatever is drawn first
		v, err := cells(r, c.X.From, c.Y.From)
		if err != nil {
			return nil, err
		}
		for i, a := range []*plots.Axis{&out.X, &out.Y} {
			if _, text := v[i].(string); text {
				place(a, v[i])
			}
		}
	}
	for i := range c.Layers {
		if err := d.layer(i, rows); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// drawing is a chart that is being made.
type drawing struct {
	chart *Chart
	out   *plots.Chart
	index map[string]int // series by layer and name
}

// layer adds the points of a layer.
func (d *drawing) layer(n int, rows Rows) error {
	l := &d.chart.Layers[n]
	if (l.Mark == plots.Lying || l.Mark == plots.Cells) && d.out.Y.Names == nil {
		d.out.Y.Names = []string{}
	}
	rows, err := rows.where(l.Where)
	if err != nil {
		return err
	}
	x, y := l.X, l.Y
	if x == nil {
		x = d.chart.X.From
	}
	if y == nil {
		y = d.chart.Y.From
	}
	for _, r := range rows {
		v, err := cells(r, x, y, l.By, l.Label, l.Low, l.High)
		if err != nil {
			return err
		}
		if v[0] == nil || v[1] == nil {
			continue
		}
		s := d.series(n, l, v[2])
		s.X = append(s.X, place(&d.out.X, v[0]))
		s.Y = append(s.Y, place(&d.out.Y, v[1]))
		if l.Label != nil {
			s.Labels = append(s.Labels, Said(l.Format, v[3]))
		}
		if low, ok := v[4].(float64); ok && l.Low != nil {
			high, _ := v[5].(float64)
			s.Low, s.High = append(s.Low, low), append(s.High, high)
		}
	}
	return nil
}

// cells are the values of expressions; nil for those that are missing.
func cells(r Row, exprs ...*Expr) (out []any, err error) {
	out = make([]any, len(exprs))
	for i, e := range exprs {
		if e == nil {
			continue
		}
		if out[i], err = e.Eval(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// series is the series of a layer that a value belongs to.
func (d *drawing) series(n int, l *Layer, by any) *plots.Series {
	name := l.Name
	if by != nil {
		name += Said("", by)
	}
	key := fmt.Sprint(n, name)
	i, ok := d.index[key]
	if !ok {
		i = len(d.out.Series)
		d.index[key] = i
		d.out.Series = append(d.out.Series, plots.Series{Name: name, Kind: l.Mark})
	}
	return &d.out.Series[i]
}

// place is where a value stands: a text has the place of its first row.
func place(a *plots.Axis, v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	name := Said("", v)
	i := slices.Index(a.Names, name)
	if i < 0 {
		i = len(a.Names)
		a.Names = append(a.Names, name)
	}
	return float64(i)
}

// Said is a value as people read it; format is one of results.Say, or "" for the value
// as it is.
func Said(format string, v any) string {
	switch v := number(v).(type) {
	case nil:
		return ""
	case float64:
		if say := results.Say[format]; say != nil {
			return say(v)
		}
		return results.Plain(v)
	default:
		return fmt.Sprint(v)
	}
}
