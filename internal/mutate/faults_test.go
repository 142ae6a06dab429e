// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"path/filepath"
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
	outcome              outcome
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

// faults lists all that can be put into the package, in the order of its text: into its functions, and of its
// tables into the functions that these hold. Coverage does not tell which other value of a table a test has asked for.
func (p *pkg) faults() (all []fault) {
	for i, file := range p.Syntax {
		for _, decl := range file.Decls {
			s := scan{pkg: p, file: filepath.Base(p.GoFiles[i])}
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					s.function = n.Names[0].Name
				case *ast.FuncDecl:
					s.function = n.Name.Name
				}
				switch n.(type) {
				case *ast.FuncDecl, *ast.FuncLit:
					ast.Inspect(n, s.node)
					return false
				}
				return true
			})
			all = append(all, s.found...)
		}
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
	return all
}

// draw takes n of the faults that compile, chosen by seed; all of them if n is 0.
func draw(all []fault, n int, seed uint64, compiles func(fault) bool) (drawn []fault) {
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
		if n > 0 && len(drawn) == n {
			break
		}
		if compiles(all[i]) {
			drawn = append(drawn, all[i])
		}
	}
	return drawn
}

// scan collects the faults of one declaration.
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

func (s *scan) add(kind string, from, to token.Pos, text string) {
	start, end := s.Fset.Position(from), s.Fset.Position(to)
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
	return string(s.src[s.file][s.Fset.Position(n.Pos()).Offset:s.Fset.Position(n.End()).Offset])
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
	case *ast.DeferStmt, *ast.GoStmt:
		s.add("drop", n.Pos(), n.End(), "")
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				s.cases = append(s.cases, choice{e.Pos(), e.End(), s.Fset.Position(n.Pos()).Line})
			}
		}
	case *ast.FuncDecl:
		s.early(n.Type, n.Body)
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
	t := s.TypesInfo.TypeOf(method.X)
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
		ta, tb := s.TypesInfo.TypeOf(a), s.TypesInfo.TypeOf(b)
		if ta == nil || tb == nil || !types.Identical(ta, tb) || s.text(a) == s.text(b) {
			continue
		}
		if _, option := ta.Underlying().(*types.Signature); option && call.Ellipsis == token.NoPos {
			continue
		}
		s.add("swap", a.Pos(), b.End(), s.text(b)+", "+s.text(a))
	}
}

// early lets the function return at once, with zeros, unless it does nothing else.
func (s *scan) early(fn *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || len(body.List) == 0 {
		return
	}
	if ret, ok := body.List[0].(*ast.ReturnStmt); ok && !slices.ContainsFunc(ret.Results, func(e ast.Expr) bool {
		return !slices.Contains([]string{"nil", "0", "false", `""`}, s.text(e))
	}) {
		return
	}
	var zeros []string
	if results := fn.Results; results != nil && len(results.List[0].Names) == 0 {
		for _, field := range results.List {
			zeros = append(zeros, "*new("+s.text(field.Type)+")")
		}
	}
	after := body.Lbrace + 1
	s.add("return", after, after, "if true { return "+strings.Join(zeros, ", ")+" };")
}
