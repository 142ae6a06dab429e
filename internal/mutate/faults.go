// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"slices"
	"strings"
)

// fault is one small change of a file.
type fault struct {
	file, function, kind string
	line                 int
	nth                  int    // of those in its function that read alike, from 1
	covered              int    // the line that coverage counts when the fault's is reached
	start, end           int    // the bytes that it replaces
	old, new             string // what stands there, and what then
}

// in is src with the fault in it.
func (f fault) in(src []byte) []byte {
	return slices.Concat(src[:f.start], []byte(f.new), src[f.end:])
}

// key names a fault without its line, which other changes move. The second of two that
// read alike in a function has " #2" behind it.
func (f fault) key(dir string) string {
	key := strings.Join(strings.Fields(fmt.Sprintf("%s/%s %s %s: %s -> %s", dir, f.file, f.function, f.kind,
		f.old, f.new)), " ")
	if f.nth > 1 {
		key += fmt.Sprintf(" #%d", f.nth)
	}
	return key
}

// others is what stands in place of an operator. Each has one: the nearest that differs.
var others = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&",
}

// faults lists all that can be put into the package, in the order of its text.
func (p *pkg) faults() ([]fault, error) {
	var all []fault
	for _, name := range p.names {
		for _, decl := range p.files[name].Decls {
			s := scan{pkg: p, file: name}
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				s.declared(decl)
			case *ast.GenDecl:
				s.literals(decl)
			}
			all = append(all, s.found...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no place for a fault")
	}
	slices.SortStableFunc(all, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start, b.start))
	})
	seen := map[string]int{}
	for i := range all {
		key := all[i].key("")
		seen[key]++
		all[i].nth = seen[key]
	}
	return all, nil
}

// draw takes n of the faults that compile, chosen by seed; all of them if n is 0.
func draw(all []fault, n int, seed uint64, compiles func(fault) bool) []fault {
	r := rand.New(rand.NewPCG(seed, 0))
	var drawn []fault
	for _, i := range r.Perm(len(all)) {
		if n > 0 && len(drawn) == n {
			break
		}
		if compiles(all[i]) {
			drawn = append(drawn, all[i])
		}
	}
	return drawn
}

// scan collects the faults of one function.
type scan struct {
	*pkg
	file, function string
	found          []fault
	cases          []choice
}

// choice is an expression behind case, which coverage counts where its switch begins.
type choice struct {
	from, to token.Pos
	line     int
}

// declared puts faults into a function.
func (s *scan) declared(fn *ast.FuncDecl) {
	if fn.Body == nil {
		return
	}
	s.function = fn.Name.Name
	s.early(fn.Type, fn.Body)
	ast.Inspect(fn.Body, s.node)
}

// literals puts faults into the functions that a table of the package holds, and nowhere
// else in the table: coverage does not tell which of its values a test has asked for.
func (s *scan) literals(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		s.function = value.Names[0].Name
		ast.Inspect(value, func(n ast.Node) bool {
			literal, ok := n.(*ast.FuncLit)
			if ok {
				ast.Inspect(literal, s.node)
			}
			return !ok
		})
	}
}

func (s *scan) add(kind string, from, to token.Pos, text string) {
	start, end := s.fset.Position(from), s.fset.Position(to)
	f := fault{file: s.file, function: s.function, kind: kind, line: start.Line, covered: start.Line,
		start: start.Offset, end: end.Offset, old: string(s.src[s.file][start.Offset:end.Offset]), new: text}
	for _, c := range s.cases {
		if from >= c.from && to <= c.to {
			f.covered = c.line
		}
	}
	s.found = append(s.found, f)
}

func (s *scan) text(n ast.Node) string {
	return string(s.src[s.file][s.fset.Position(n.Pos()).Offset:s.fset.Position(n.End()).Offset])
}

func (s *scan) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other, ok := others[n.Op]; ok {
			operands := s.text(n.X) + " " + other + " " + s.text(n.Y)
			s.add("compare", n.Pos(), n.End(), operands)
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !s.logs(call) {
			s.add("drop", n.Pos(), n.End(), "")
		}
	case *ast.DeferStmt:
		s.add("drop", n.Pos(), n.End(), "")
	case *ast.GoStmt:
		s.add("drop", n.Pos(), n.End(), "")
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				s.cases = append(s.cases, choice{e.Pos(), e.End(), s.fset.Position(n.Pos()).Line})
			}
		}
	case *ast.FuncLit:
		s.early(n.Type, n.Body)
	case *ast.CallExpr:
		s.swaps(n)
	}
	return true
}

// logs says whether a call writes to the log: no test asks what stands there.
func (s *scan) logs(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	t := s.info.TypeOf(method.X)
	return t != nil && strings.HasPrefix(t.String(), "*go.uber.org/zap.")
}

// swaps exchanges two neighbouring arguments of one type. The least and the greatest of
// some values are the same in any order, and so are options, which are functions, and the
// fields of a line of the log.
func (s *scan) swaps(call *ast.CallExpr) {
	if fn := s.text(call.Fun); fn == "min" || fn == "max" || s.logs(call) {
		return
	}
	for i := 1; i < len(call.Args); i++ {
		a, b := call.Args[i-1], call.Args[i]
		ta, tb := s.info.TypeOf(a), s.info.TypeOf(b)
		if ta == nil || tb == nil || !types.Identical(ta, tb) || s.text(a) == s.text(b) {
			continue
		}
		if _, option := ta.Underlying().(*types.Signature); option && call.Ellipsis == token.NoPos {
			continue
		}
		s.add("swap", a.Pos(), b.End(), s.text(b)+", "+s.text(a))
	}
}

// early lets the function return at once, with zeros.
func (s *scan) early(fn *ast.FuncType, body *ast.BlockStmt) {
	if len(body.List) == 0 || s.zero(body.List) {
		return
	}
	var zeros []string
	if results := fn.Results; results != nil {
		for _, field := range results.List {
			if len(field.Names) > 0 {
				zeros = nil
				break
			}
			zeros = append(zeros, "*new("+s.text(field.Type)+")")
		}
	}
	after := body.Lbrace + 1
	s.add("return", after, after, "if true { return "+strings.Join(zeros, ", ")+" };")
}

// zero says whether a body does nothing but return zeros.
func (s *scan) zero(body []ast.Stmt) bool {
	ret, ok := body[0].(*ast.ReturnStmt)
	if !ok {
		return false
	}
	return !slices.ContainsFunc(ret.Results, func(e ast.Expr) bool {
		return !slices.Contains([]string{"nil", "0", "false", `""`}, s.text(e))
	})
}
