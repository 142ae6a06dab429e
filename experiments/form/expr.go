// SPDX-License-Identifier: Apache-2.0

package form

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// Expr is an expression over the columns of a row, as Go writes it: numbers, texts in
// quotes, names of columns, + - * / comparisons && || ! and some functions. An operation
// on an empty cell is empty itself, but for == "" and != "".
type Expr struct {
	Text string
	node ast.Expr
}

// functions are those of numbers that expressions can call; formats of numbers are, too.
var functions = map[string]struct {
	takes int
	of    func(...float64) any
}{
	"ceil":  {1, func(v ...float64) any { return math.Ceil(v[0]) }},
	"floor": {1, func(v ...float64) any { return math.Floor(v[0]) }},
	"round": {1, func(v ...float64) any { return math.Round(v[0]) }},
	"log2":  {1, func(v ...float64) any { return math.Log2(v[0]) }},
	"min":   {2, func(v ...float64) any { return math.Min(v[0], v[1]) }},
	"max":   {2, func(v ...float64) any { return math.Max(v[0], v[1]) }},
	"fixed": {2, func(v ...float64) any { return results.Fixed(int(v[0]), v[1]) }}, // the first: digits behind the point
}

// calc is the value of an expression that stands in a cell, numberOf that of a number, and
// either the second of its values where the first holds, else the third.
const calc, numberOf, either = "calc", "number", "either"

// takes is how many values a function takes; 0 where there is none of that name.
func takes(name string) int {
	switch {
	case name == either:
		return 3
	case name == calc || name == numberOf || results.Say[name] != nil:
		return 1
	}
	return functions[name].takes
}

// ParseExpr reads an expression.
func ParseExpr(text string) (*Expr, error) {
	node, err := parser.ParseExpr(text)
	if err != nil {
		if list, ok := errors.AsType[scanner.ErrorList](err); ok {
			err = errors.New(list[0].Msg)
		}
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	if err := known(node); err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return &Expr{text, node}, nil
}

// known tells whether an expression is made of what Eval knows.
func known(node ast.Expr) error {
	switch n := node.(type) {
	case *ast.BasicLit:
		if n.Kind == token.INT || n.Kind == token.FLOAT || n.Kind == token.STRING {
			return nil
		}
	case *ast.Ident:
		return nil
	case *ast.SelectorExpr:
		if _, ok := n.X.(*ast.Ident); ok {
			return nil
		}
	case *ast.ParenExpr:
		return known(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.SUB || n.Op == token.NOT {
			return known(n.X)
		}
	case *ast.BinaryExpr:
		if strings.Contains("+ - * / == != < <= > >= && ||", n.Op.String()) {
			return errors.Join(known(n.X), known(n.Y))
		}
	case *ast.CallExpr:
		if call, _, args := looks(n); call != nil && (len(args) == 2 || len(args) == 1 && call.Fun.(*ast.Ident).Name == "count") {
			return errors.Join(known(args[0]), known(args[len(args)-1]))
		}
		name, _ := n.Fun.(*ast.Ident)
		if name == nil || takes(name.Name) == 0 {
			break
		}
		if want := takes(name.Name); len(n.Args) != want {
			return fmt.Errorf("%s takes %d values", name.Name, want)
		}
		for _, a := range n.Args {
			if err := known(a); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("want names, numbers, texts in quotes, + - * /, comparisons, && || !, " +
		"ceil floor round log2 min max number calc either fixed, formats of numbers, and first last least most sum count")
}

// Names are the columns that the expression is about, each once.
func (e *Expr) Names() (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] && name != "true" && name != "false" {
			seen[name], names = true, append(names, name)
		}
	}
	ast.Inspect(e.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			call, table, args := looks(n)
			if call == nil {
				args = n.Args
			}
			for _, a := range args {
				for _, name := range (&Expr{node: a}).Names() {
					if own, mine := strings.CutPrefix(name, my+"."); mine {
						add(own)
					} else if table == "" {
						add(name)
					}
				}
			}
			return false
		case *ast.SelectorExpr:
			add(selected(n))
			return false
		case *ast.Ident:
			add(n.Name)
		}
		return true
	})
	return names
}

func selected(n *ast.SelectorExpr) string {
	x, _ := n.X.(*ast.Ident)
	return x.Name + "." + n.Sel.Name
}

// Eval is the value for a row: a float64, a string, a bool, or nil where it does not
// apply. A name that no column has is an error.
func (e *Expr) Eval(row Row) (any, error) {
	v, err := eval(e.node, scope{Row: row})
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", e.Text, err)
	}
	return finite(v), nil
}

// finite is a value, or nil for a number that is none.
func finite(v any) any {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return nil
	}
	return v
}

// Holds tells whether a condition holds of a row. A nil condition always does.
func (e *Expr) Holds(row Row) (bool, error) {
	if e == nil {
		return true, nil
	}
	v, err := e.Eval(row)
	return truth(v), err
}

func eval(node ast.Expr, s scope) (any, error) {
	switch n := node.(type) {
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			return strconv.Unquote(n.Value)
		}
		return strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	case *ast.Ident:
		return s.operand(n.Name)
	case *ast.SelectorExpr:
		if n.X.(*ast.Ident).Name == my && s.my != nil {
			return s.my.operand(n.Sel.Name)
		}
		return s.operand(selected(n))
	case *ast.ParenExpr:
		return eval(n.X, s)
	case *ast.UnaryExpr:
		v, err := eval(n.X, s)
		if n.Op == token.NOT {
			return !truth(v), err
		}
		f, ok := v.(float64)
		if v == nil || !ok {
			return nil, err
		}
		return -f, err
	case *ast.CallExpr:
		return call(n, s)
	}
	n := node.(*ast.BinaryExpr)
	x, err := eval(n.X, s)
	if err != nil {
		return nil, err
	}
	y, err := eval(n.Y, s)
	if err != nil {
		return nil, err
	}
	return binary(n.Op, x, y)
}

func call(n *ast.CallExpr, s scope) (any, error) {
	if call, table, args := looks(n); call != nil {
		return lookup(call, table, args, s)
	}
	name := n.Fun.(*ast.Ident).Name
	if name == either {
		v, err := eval(n.Args[0], s)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			return eval(n.Args[1], s)
		}
		return eval(n.Args[2], s)
	}
	if name == calc || name == numberOf {
		return read(name, n.Args[0], s)
	}
	var values []float64
	for _, a := range n.Args {
		v, err := eval(a, s)
		if err != nil || v == nil {
			return nil, err
		}
		f, ok := v.(float64)
		if !ok {
			return nil, fmt.Errorf("%s of %v, which is no number", name, v)
		}
		values = append(values, f)
	}
	if say := results.Say[name]; say != nil {
		return say(values[0]), nil
	}
	return functions[name].of(values...), nil
}

func read(name string, from ast.Expr, s scope) (any, error) {
	v, err := eval(from, s)
	text, isText := v.(string)
	if err != nil || !isText {
		return v, err
	}
	if name == numberOf {
		return strconv.ParseFloat(text, 64)
	}
	inner, err := ParseExpr(text)
	if err != nil {
		return nil, err
	}
	if strings.Contains(text, calc) {
		return nil, fmt.Errorf("%q: %s does not stand inside of itself", text, calc)
	}
	return inner.Eval(s.Row)
}

// truth tells whether a value is one that holds.
func truth(v any) bool { return v != nil && v != false && v != "" && v != 0.0 }

// binary is an operator's value.
func binary(op token.Token, x, y any) (any, error) {
	empty := func(v any) any {
		if v == nil {
			return ""
		}
		return v
	}
	switch op {
	case token.EQL:
		return empty(x) == empty(y), nil
	case token.NEQ:
		return empty(x) != empty(y), nil
	case token.LAND:
		return truth(x) && truth(y), nil
	case token.LOR:
		return truth(x) || truth(y), nil
	}
	if x == nil || y == nil {
		return nil, nil
	}
	s, text := x.(string)
	if text && op == token.ADD {
		return s + fmt.Sprint(y), nil
	}
	if t, too := y.(string); text && too && op.Precedence() == token.LSS.Precedence() {
		x, y = float64(strings.Compare(s, t)), 0.0 // texts stand in the order of their letters
	}
	a, isA := x.(float64)
	b, isB := y.(float64)
	if !isA || !isB {
		return nil, fmt.Errorf("%v %v %v: these are not both numbers", x, op, y)
	}
	switch op {
	case token.ADD:
		return a + b, nil
	case token.SUB:
		return a - b, nil
	case token.MUL:
		return a * b, nil
	case token.QUO:
		return a / b, nil
	case token.LSS:
		return a < b, nil
	case token.LEQ:
		return a <= b, nil
	case token.GTR:
		return a > b, nil
	}
	return a >= b, nil
}
