// SPDX-License-Identifier: Apache-2.0

package form

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// flags reads what can be chosen.
func (f *Form) flags(b block) error {
	for _, it := range b.items {
		flag, err := choice.ParseDeclared(it.text)
		if err != nil {
			return f.wrong(it.line, "%v", err)
		}
		flag.Line = it.line
		f.Flags = append(f.Flags, flag)
	}
	return nil
}

// columns reads lines such as
//
//	rounds_saved integer detail if rounds = rounds - sorted.rounds : rounds that one sort would save
//
// A name behind the word makes them the columns of a table beside the report, "NAME hidden" of one without a file.
func (f *Form) columns(b block) error {
	to := &f.Columns
	if b.value != "" {
		name, hidden := strings.CutSuffix(b.value, " hidden")
		if f.Named(name) != nil {
			return f.wrong(b.line, "columns: a second table %s", name)
		}
		f.Tables = append(f.Tables, Declared{Name: name, Hidden: hidden, Line: b.line})
		to = &f.Tables[len(f.Tables)-1].Columns
	}
	for _, it := range b.items {
		c, err := column(it.text)
		if err != nil {
			return f.wrong(it.line, "%v", err)
		}
		c.Line = it.line
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
func (f *Form) fields(b block, to map[string]any, several string) (more []item, err error) {
	seen := map[string]bool{}
	for _, it := range b.items {
		key, value, _ := strings.Cut(it.text, ":")
		it.text = strings.TrimSpace(value)
		field, known := to[key]
		switch {
		case !known:
			return nil, f.wrong(it.line, "%s: %q: %v", b.key, key, spelling.NotOneOf(key, slices.Sorted(maps.Keys(to))))
		case key == several:
			more = append(more, it)
			continue
		case seen[key]:
			return nil, f.wrong(it.line, "%s: a second %s", b.key, key)
		}
		seen[key] = true
		switch field := field.(type) {
		case *item:
			*field = it
		case **Text:
			*field = f.text(it)
		case **Expr:
			*field, err = f.expr(it)
		case *bool:
			if *field = it.text == "yes"; !*field && it.text != "no" {
				err = f.wrong(it.line, "%s: %s %q: want yes or no", b.key, key, it.text)
			}
		case *string:
			if *field = it.text; f.Named(it.text) == nil {
				err = f.wrong(it.line, "%s: %s %s: no table above has that name", b.key, key, it.text)
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
func (f *Form) expr(it item) (*Expr, error) {
	if it.text == "" {
		return nil, nil
	}
	e, err := ParseExpr(it.text)
	if err != nil {
		return nil, f.wrong(it.line, "%v", err)
	}
	return e, nil
}

// figure reads a published figure.
func (f *Form) figure(b block) (err error) {
	if b.value != "" {
		return f.wrong(b.line, "figure: %q: want nothing behind it", b.value)
	}
	fig := Figure{Line: b.line}
	if _, err = f.fields(b, map[string]any{"what": &fig.What, "of": &fig.Of, "published": &fig.Published, "ours": &fig.Ours,
		"low": &fig.Low, "high": &fig.High, "where": &fig.Where, "exact": &fig.Exact, "source": &fig.Source}, ""); err != nil {
		return err
	}
	if fig.What == nil || fig.Published == nil || fig.Ours == nil {
		return f.wrong(b.line, "figure: want what, published and ours")
	}
	f.Figures = append(f.Figures, fig)
	return nil
}

// must reads "must: CONDITION : WHAT IS WRONG".
func (f *Form) must(b block) (err error) {
	condition, says, _ := strings.Cut(b.value, " : ")
	m := Must{Says: f.text(item{strings.TrimSpace(says), b.line})}
	if m.Says == nil {
		return f.wrong(b.line, "must: want a condition, :, and the message for a row of which it does not hold")
	}
	m.Holds, err = f.expr(item{condition, b.line})
	f.Must = append(f.Must, m)
	return err
}

// marks are the words for a layer's marks.
var marks = map[string]plots.Mark{"line": plots.Line, "curve": plots.Curve, "points": plots.Points, "steps": plots.Steps,
	"bars": plots.Bars, "lying": plots.Lying, "cells": plots.Cells}

// chart reads a picture.
func (f *Form) chart(b block) (err error) {
	c, only := Chart{End: b.value, Line: b.line}, item{}
	layers, err := f.fields(b, map[string]any{"title": &c.Title, "subtitle": &c.Subtitle, "of": &c.Of, "x": &c.X, "y": &c.Y,
		"where": &c.Where, "only": &only, "sort": &c.Sort, "alone": &c.Alone, "draw": nil}, "draw")
	if err != nil {
		return err
	}
	if strings.Trim(b.value, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return f.wrong(b.line, "chart: %q: want nothing, a file's name, or the end of one such as -front", b.value)
	}
	if slices.ContainsFunc(f.Charts, func(c Chart) bool { return c.End == b.value }) {
		return f.wrong(b.line, "chart: a second one of this name")
	}
	if only.text != "" {
		column, value, _ := strings.Cut(only.text, " = ")
		if c.Only, c.Is = column, f.text(item{value, only.line}); !identifier(column) || c.Is == nil {
			return f.wrong(only.line, "only %q: want a column, =, and a template of its value", only.text)
		}
	}
	for _, l := range layers {
		layer, err := f.layer(l)
		if err != nil {
			return err
		}
		if layer.X == nil && c.X.From == nil || layer.Y == nil && c.Y.From == nil {
			return f.wrong(l.line, "chart: want x and y on the axis or on this line")
		}
		c.Layers = append(c.Layers, layer)
	}
	if c.Title == nil || len(c.Layers) == 0 {
		return f.wrong(b.line, "chart: want title and draw")
	}
	f.Charts = append(f.Charts, c)
	return nil
}

// chartAxis reads "rounds log : rounds (interrupts per CPU)".
func (f *Form) chartAxis(it item) (a ChartAxis, err error) {
	from, label, _ := strings.Cut(" "+it.text, " : ")
	from = strings.TrimSpace(from)
	a.Label = f.text(item{strings.TrimSpace(label), it.line})
	from, a.Log = strings.CutSuffix(" "+from, " log")
	a.From, err = f.expr(item{strings.TrimSpace(from), it.line})
	return a, err
}

// layer reads "lying x=rounds by=order label=rounds format=thousands"; values with
// blanks stand in quotes.
func (f *Form) layer(it item) (l Layer, err error) {
	kind, rest, _ := strings.Cut(it.text, " ")
	mark, ok := marks[kind]
	if !ok {
		return l, f.wrong(it.line, "draw %q: %v", kind, spelling.NotOneOf(kind, slices.Sorted(maps.Keys(marks))))
	}
	l.Mark = mark
	to := map[string]**Expr{"x": &l.X, "y": &l.Y, "low": &l.Low, "high": &l.High, "label": &l.Label, "by": &l.By,
		"where": &l.Where}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		key, value, _ := strings.Cut(rest, "=")
		if strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "`") {
			quoted, err := strconv.QuotedPrefix(value)
			if err != nil {
				return l, f.wrong(it.line, "draw: %s: a quote is open", key)
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
			return l, f.wrong(it.line, "draw: %q: want one each of x, y, low, high, label, by, where, name and format, "+
				"with = and a value", key)
		default:
			if *at, err = f.expr(item{value, it.line}); err != nil {
				return l, err
			}
		}
	}
	if (l.Low == nil) != (l.High == nil) {
		return l, f.wrong(it.line, "draw: low goes with high")
	}
	return l, nil
}
