// SPDX-License-Identifier: Apache-2.0

package form

import (
	"errors"
	"fmt"
	"go/ast"
	"math"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// my stands before the columns of the row that looks at others.
const my = "my"

// scope is what the names of an expression stand for.
type scope struct {
	Row
	my Row                     // the row that looks; nil where none does
	of func(table string) Rows // that can be looked at, "" for the own table; nil where there are none
}

// lookups are the functions that look at other rows, and what becomes of the values so far and one more. The first
// argument may name a table beside the report. Then comes a condition on its rows, and then a value of those of which
// it holds.
var lookups = map[string]func(so, next float64) float64{
	"first": nil, "last": nil, "least": math.Min, "most": math.Max,
	"sum":   func(so, next float64) float64 { return so + next },
	"count": func(so, _ float64) float64 { return so + 1 },
}

// looks tells whether a call looks at other rows, and at those of which table.
func looks(n ast.Node) (call *ast.CallExpr, table string, args []ast.Expr) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, "", nil
	}
	name, _ := call.Fun.(*ast.Ident)
	if name == nil {
		return nil, "", nil
	}
	if _, ok := lookups[name.Name]; !ok {
		return nil, "", nil
	}
	args = call.Args
	if len(args) > 0 {
		if lit, ok := args[0].(*ast.BasicLit); ok {
			table, args = strings.Trim(lit.Value, "`\""), args[1:]
		}
	}
	return call, table, args
}

// Late tells whether the expression looks at other rows, so that its value is known when all are there.
func (e *Expr) Late() (late bool) {
	ast.Inspect(e.node, func(n ast.Node) bool {
		call, _, _ := looks(n)
		late = late || call != nil
		return !late
	})
	return late
}

// lookup is the value of a call that looks at other rows.
func lookup(call *ast.CallExpr, table string, args []ast.Expr, s scope) (any, error) {
	if s.of == nil {
		return nil, errors.New("only columns can look at other rows")
	}
	name, out := call.Fun.(*ast.Ident).Name, any(nil)
	fold := lookups[name]
	if len(args) == 1 {
		out = 0.0
	}
	for _, r := range s.of(table) {
		other := scope{r, s.Row, s.of}
		holds, err := eval(args[0], other)
		if err != nil || !truth(holds) {
			if err != nil {
				return nil, err
			}
			continue
		}
		v := any(0.0)
		if len(args) == 2 {
			if v, err = eval(args[1], other); err != nil || name == "first" {
				return v, err
			}
		}
		if fold == nil {
			out = v
			continue
		}
		number, is := v.(float64)
		so, some := out.(float64)
		switch {
		case !is:
		case !some:
			out = number
		default:
			out = fold(so, number)
		}
	}
	return out, nil
}

// late marks the columns that are known when all rows are there.
func late(columns []Column) {
	var names []string
	for i := range columns {
		c := &columns[i]
		c.Late = c.From != nil && (c.From.Late() || slices.ContainsFunc(c.From.Names(), func(name string) bool {
			return slices.Contains(names, name)
		}))
		if c.Late {
			names = append(names, c.Name)
		}
	}
}

// Finish adds the columns that look at other rows to the rows of a table, all of which are there: of has them by table.
func Finish(columns []Column, rows Rows, of func(table string) Rows) error {
	for _, c := range columns {
		if !c.Late {
			continue
		}
		for _, r := range rows {
			v, err := eval(c.From.node, scope{r, nil, of})
			if err != nil {
				return fmt.Errorf("column %s: expression %q: %w", c.Name, c.From.Text, err)
			}
			if c.If != "" && !truth(r[c.If]) {
				v = nil
			}
			v = finite(v)
			if n, number := v.(float64); number && c.Kind == results.Integer {
				v = int64(n)
			}
			r[c.Name] = v
		}
	}
	return nil
}
