// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"

	"github.com/textpoke/textpoke/check"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// Matrix is the rows laid out on a page: protocols and their mutations down, an
// instruction set and fetch model across.
type Matrix struct {
	Title   string
	Columns []MatrixColumn
	Groups  []*MatrixGroup
}

// MatrixColumn is an instruction set with a fetch model.
type MatrixColumn struct{ Arch, Fetch string }

// MatrixGroup is a protocol on a machine.
type MatrixGroup struct {
	Title string
	Lines []*MatrixLine
}

// MatrixLine is a mutation, or none, with a cell a column; nil where the protocol
// does not offer the mutation.
type MatrixLine struct {
	Label string
	Cells []*MatrixCell
}

// MatrixCell is one verdict.
type MatrixCell struct {
	Verdict  explore.Verdict
	Property cpus.Property // when unsafe
	Depth    int
}

// asMeant labels the line of a protocol without any defect.
const asMeant = "(no mutation)"

// Matrix lays the rows out.
func (a *Answer) Matrix() *Matrix {
	m := &Matrix{Title: a.headline()}
	columns := map[MatrixColumn]int{}
	groups := map[string]*MatrixGroup{}
	lines := map[string]*MatrixLine{}
	for i := range a.Rows { // all columns first: lines are as long as there are columns
		c := columnOf(&a.Rows[i])
		if _, ok := columns[c]; !ok {
			columns[c] = len(m.Columns)
			m.Columns = append(m.Columns, c)
		}
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		title := a.groupTitle(r)
		g := groups[title]
		if g == nil {
			g = &MatrixGroup{Title: title}
			groups[title] = g
			m.Groups = append(m.Groups, g)
		}
		label := mutationName(r)
		l := lines[title+"\n"+label]
		if l == nil {
			l = &MatrixLine{Label: label, Cells: make([]*MatrixCell, len(m.Columns))}
			lines[title+"\n"+label] = l
			g.Lines = append(g.Lines, l)
		}
		cell := &MatrixCell{Verdict: r.Verdict, Depth: r.Depth}
		if r.Violation != nil {
			cell.Property = r.Violation.Property
		}
		l.Cells[columns[columnOf(r)]] = cell
	}
	m.inOrder()
	return m
}

func columnOf(r *check.VerdictRow) MatrixColumn {
	return MatrixColumn{r.Arch.Traits().Name, r.Fetch.String()}
}

func mutationName(r *check.VerdictRow) string {
	if r.Mutation == "" {
		return asMeant
	}
	return r.Mutation
}

// groupTitle is the protocol, with the machine where there are several.
func (a *Answer) groupTitle(r *check.VerdictRow) string {
	machines := map[string]bool{}
	for i := range a.Rows {
		machines[machineOf(&a.Rows[i])] = true
	}
	if len(machines) == 1 {
		return r.Protocol
	}
	return r.Protocol + ", " + machineOf(r)
}

// machineOf says what a row was asked about, beside the protocol.
func machineOf(r *check.VerdictRow) string {
	return fmt.Sprintf("%s and %s", plural(cpus.FormatRoles(r.Roles), "CPU"), plural(fmt.Sprint(r.Sites), "site"))
}

func plural(n, what string) string {
	if n == "1" {
		return n + " " + what
	}
	return n + " " + what + "s"
}

// inOrder sorts each group's lines as mutations are listed: an architecture that
// comes first may not offer what a later one does.
func (m *Matrix) inOrder() {
	for _, g := range m.Groups {
		sortByMutation(g.Lines, func(l *MatrixLine) string { return l.Label })
	}
}
