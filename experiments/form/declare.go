// SPDX-License-Identifier: Apache-2.0

package form

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// flags reads what can be chosen.
func (f *Form) flags(b inputs.Block) error {
	for _, it := range b.Items {
		flag, err := choice.ParseDeclared(it.Text)
		if err != nil {
			return f.wrong(it.Line, "%v", err)
		}
		flag.Line = it.Line
		f.Flags = append(f.Flags, flag)
	}
	return nil
}

// columns reads lines such as
//
//	rounds_saved integer detail if rounds = rounds - sorted.rounds : rounds that one sort would save
//
// A name behind the word makes them the columns of a table beside the report, "NAME hidden" of one without a file.
func (f *Form) columns(b inputs.Block) error {
	to := &f.Columns
	if b.Value != "" {
		name, hidden := strings.CutSuffix(b.Value, " hidden")
		if f.Named(name) != nil {
			return f.wrong(b.Line, "columns: a second table %s", name)
		}
		f.Tables = append(f.Tables, Declared{Name: name, Hidden: hidden, Line: b.Line})
		to = &f.Tables[len(f.Tables)-1].Columns
	}
	for _, it := range b.Items {
		c, err := column(it.Text)
		if err != nil {
			return f.wrong(it.Line, "%v", err)
		}
		c.Line = it.Line
		*to = append(*to, c)
	}
	late(*to)
	return nil
}

// Named is the table beside the report that has that name; nil if there is none.
func (f *Form) Named(name string) *Declared {
	for i := range f.Tables {
		if f.Tables[i].Name == name {
			return &f.Tables[i]
		}
	}
	return nil
}

func column(text string) (c Column, err error) {
	if c.Declared, err = results.ParseColumn(text); err == nil && c.Expr != "" {
		c.From, err = ParseExpr(c.Expr)
	}
	return c, err
}

// fields reads "key: value" lines, of which each key but several comes once, into what to has for the key: a text, a
// template, an expression, yes or no, a table's name or an axis.
func (f *Form) fields(b inputs.Block, to map[string]any, several string) (more []inputs.Item, err error) {
	seen := map[string]bool{}
	for _, it := range b.Items {
		key, value, _ := strings.Cut(it.Text, ":")
		it.Text = strings.TrimSpace(value)
		field, known := to[key]
		switch {
		case !known:
			return nil, f.wrong(it.Line, "%s: %q: %v", b.Key, key, spelling.NotOneOf(key, slices.Sorted(maps.Keys(to))))
		case key == several:
			more = append(more, it)
			continue
		case seen[key]:
			return nil, f.wrong(it.Line, "%s: a second %s", b.Key, key)
		}
		seen[key] = true
		switch field := field.(type) {
		case *inputs.Item:
			*field = it
		case **Text:
			*field = f.text(it)
		case **Expr:
			*field, err = f.expr(it)
		case *bool:
			if *field = it.Text == "yes"; !*field && it.Text != "no" {
				err = f.wrong(it.Line, "%s: %s %q: want yes or no", b.Key, key, it.Text)
			}
		case *string:
			if *field = it.Text; f.Named(it.Text) == nil {
				err = f.wrong(it.Line, "%s: %s %s: no table above has that name", b.Key, key, it.Text)
			}
		case *ChartAxis:
			*field, err = f.chartAxis(it)
		}
		if err != nil {
			return nil, err
		}
	}
	return more, nil
}

// expr reads an expression that may be missing.
func (f *Form) expr(it inputs.Item) (*Expr, error) {
	if it.Text == "" {
		return nil, nil
	}
	e, err := ParseExpr(it.Text)
	if err != nil {
		return nil, f.wrong(it.Line, "%v", err)
	}
	return e, nil
}

// figure reads a published figure.
func (f *Form) figure(b inputs.Block) (err error) {
	if b.Value != "" {
		return f.wrong(b.Line, "figure: %q: want nothing behind it", b.Value)
	}
	fig := Figure{Line: b.Line}
	if _, err = f.fields(b, map[string]any{"what": &fig.What, "of": &fig.Of, "published": &fig.Published, "ours": &fig.Ours,
		"low": &fig.Low, "high": &fig.High, "where": &fig.Where, "exact": &fig.Exact, "source": &fig.Source}, ""); err != nil {
		return err
	}
	if fig.What == nil || fig.Published == nil || fig.Ours == nil {
		return f.wrong(b.Line, "figure: want what, published and ours")
	}
	f.Figures = append(f.Figures, fig)
	return nil
}

// must reads "must: CONDITION : WHAT IS WRONG".
func (f *Form) must(b inputs.Block) (err error) {
	condition, says, _ := strings.Cut(b.Value, " : ")
	m := Must{Says: f.text(inputs.Item{Text: strings.TrimSpace(says), Line: b.Line})}
	if m.Says == nil {
		return f.wrong(b.Line, "must: want a condition, :, and the message for a row of which it does not hold")
	}
	m.Holds, err = f.expr(inputs.Item{Text: condition, Line: b.Line})
	f.Must = append(f.Must, m)
	return err
}

// marks are the words for a layer's marks.
var marks = map[string]plots.Mark{"line": plots.Line, "curve": plots.Curve, "points": plots.Points, "steps": plots.Steps,
	"bars": plots.Bars, "lying": plots.Lying, "cells": plots.Cells}

// chart reads a picture.
func (f *Form) chart(b inputs.Block) (err error) {
	c, only := Chart{End: b.Value, Line: b.Line}, inputs.Item{}
	layers, err := f.fields(b, map[string]any{"title": &c.Title, "subtitle": &c.Subtitle, "of": &c.Of, "x": &c.X, "y": &c.Y,
		"where": &c.Where, "only": &only, "sort": &c.Sort, "alone": &c.Alone, "draw": nil}, "draw")
	if err != nil {
		return err
	}
	if strings.Trim(b.Value, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return f.wrong(b.Line, "chart: %q: want nothing, a file's name, or the end of one such as -front", b.Value)
	}
	if slices.ContainsFunc(f.Charts, func(c Chart) bool { return c.End == b.Value }) {
		return f.wrong(b.Line, "chart: a second one of this name")
	}
	if only.Text != "" {
		column, value, _ := strings.Cut(only.Text, " = ")
		if c.Only, c.Is = column, f.text(inputs.Item{Text: value, Line: only.Line}); !identifier(column) || c.Is == nil {
			return f.wrong(only.Line, "only %q: want a column, =, and a template of its value", only.Text)
		}
	}
	for _, l := range layers {
		layer, err := f.layer(l)
		if err != nil {
			return err
		}
		if layer.X == nil && c.X.From == nil || layer.Y == nil && c.Y.From == nil {
			return f.wrong(l.Line, "chart: want x and y on the axis or on this line")
		}
		c.Layers = append(c.Layers, layer)
	}
	if c.Title == nil || len(c.Layers) == 0 {
		return f.wrong(b.Line, "chart: want title and draw")
	}
	f.Charts = append(f.Charts, c)
	return nil
}

// chartAxis reads "rounds log : rounds (interrupts per CPU)".
func (f *Form) chartAxis(it inputs.Item) (a ChartAxis, err error) {
	from, label, _ := strings.Cut(" "+it.Text, " : ")
	from = strings.TrimSpace(from)
	a.Label = f.text(inputs.Item{Text: strings.TrimSpace(label), Line: it.Line})
	from, a.Log = strings.CutSuffix(" "+from, " log")
	a.From, err = f.expr(inputs.Item{Text: strings.TrimSpace(from), Line: it.Line})
	return a, err
}

// layer reads "lying x=rounds by=order label=rounds format=thousands"; values with
// blanks stand in quotes.
func (f *Form) layer(it inputs.Item) (l Layer, err error) {
	kind, rest, _ := strings.Cut(it.Text, " ")
	mark, ok := marks[kind]
	if !ok {
		return l, f.wrong(it.Line, "draw %q: %v", kind, spelling.NotOneOf(kind, slices.Sorted(maps.Keys(marks))))
	}
	l.Mark = mark
	to := map[string]**Expr{"x": &l.X, "y": &l.Y, "low": &l.Low, "high": &l.High, "label": &l.Label, "by": &l.By,
		"where": &l.Where}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		key, value, _ := strings.Cut(rest, "=")
		if strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "`") {
			quoted, err := strconv.QuotedPrefix(value)
			if err != nil {
				return l, f.wrong(it.Line, "draw: %s: a quote is open", key)
			}
			rest = value[len(quoted):]
			value, _ = strconv.Unquote(quoted)
		} else {
			value, rest, _ = strings.Cut(value, " ")
		}
		switch at := to[key]; {
		case key == "name":
			l.Name = value
		case key == "format" && results.Say[value] != nil:
			l.Format = value
		case at == nil || *at != nil || value == "":
			return l, f.wrong(it.Line, "draw: %q: want one each of x, y, low, high, label, by, where, name and format, "+
				"with = and a value", key)
		default:
			if *at, err = f.expr(inputs.Item{Text: value, Line: it.Line}); err != nil {
				return l, err
			}
		}
	}
	if (l.Low == nil) != (l.High == nil) {
		return l, f.wrong(it.Line, "draw: low goes with high")
	}
	return l, nil
}
