// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// Bind makes columns of rows that are computed in Go. A column's cell is the field, or
// the method without parameters, whose name is that of the column but for underscores
// and case: rounds_saved is RoundsSaved. A path such as Modelled.Update says otherwise.
// Where a pointer on the way is nil, and where the text at the end is "", the cell is
// empty. Other cells are own's, by the names of their columns.
// Hidden columns stand apart.
func Bind[R any](declared []Column, own map[string]func(R) any) (shown, hidden results.Columns[R], err error) {
	cells := map[string]func(R) any{}
	for _, c := range declared {
		cell := own[c.Name]
		if cell == nil {
			cell, err = source[R](c, cells)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		if c.If != "" {
			if cell, err = onlyIf(c, cell, cells); err != nil {
				return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		cells[c.Name] = cell
		to := &shown
		if c.Hidden {
			to = &hidden
		}
		*to = append(*to, results.Col[R]{Name: c.Name, Doc: c.Doc, Kind: c.Kind, Detail: c.Detail, Lead: c.Lead, Cell: cell})
	}
	return shown, hidden, nil
}

// source is where a column's cells come from.
func source[R any](c Column, before map[string]func(R) any) (func(R) any, error) {
	if c.From == nil {
		path := c.Path
		if path == "" {
			path = strings.ReplaceAll(c.Name, "_", "")
		}
		to, _, err := results.At[R](path)
		return func(r R) any { return results.CellAt(to(r), c.Kind) }, err
	}
	names := c.From.Names()
	for _, name := range names {
		if before[name] == nil {
			return nil, fmt.Errorf("there is no column %s above it", name)
		}
	}
	return func(r R) any {
		row := Row{}
		for _, name := range names {
			v, err := results.ValueOf(before[name](r))
			if err != nil {
				return err // no cell: whoever writes the row says so
			}
			row[name] = v.Any()
		}
		v, err := c.From.Eval(row)
		if err != nil {
			return err
		}
		return Cell(v, c.Kind)
	}, nil
}

// Cell makes a cell of the value of an expression.
func Cell(v any, kind results.Kind) any {
	f, ok := v.(float64)
	switch {
	case v == nil:
		return results.Empty
	case ok && kind == results.Integer:
		return int64(f)
	case ok && kind == results.Text:
		return results.Plain(f)
	}
	return v
}

// onlyIf leaves a cell empty where the condition's column is, or the path's value is
// nil, false or 0.
func onlyIf[R any](c Column, cell func(R) any, before map[string]func(R) any) (func(R) any, error) {
	holds := func(r R) bool {
		v, err := results.ValueOf(before[c.If](r))
		return err == nil && !v.IsEmpty() && v != results.Bool(false)
	}
	if before[c.If] == nil {
		to, _, err := results.At[R](c.If)
		if err != nil {
			return nil, err
		}
		holds = func(r R) bool {
			v := to(r)
			return v.IsValid() && !v.IsZero()
		}
	}
	return func(r R) any {
		if !holds(r) {
			return results.Empty
		}
		return cell(r)
	}, nil
}
