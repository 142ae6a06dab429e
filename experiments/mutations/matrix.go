// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
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

// MatrixLine is a mutation, or none, with a verdict a column; nil where the protocol
// does not offer the mutation.
type MatrixLine struct {
	Label string
	Cells []*check.VerdictRow
}

// asMeant labels the line of a protocol without any defect.
const asMeant = "(no mutation)"

// Matrix lays the rows out. Each group's lines are as mutations are listed: an
// architecture that comes first may not offer what a later one does.
func (a *Answer) Matrix() *Matrix {
	all := a.all()
	m := &Matrix{Title: a.headline(), Columns: experiments.Distinct(all, columnOf)}
	title := protocolName
	if len(all.names(machineOf)) > 1 {
		title = func(r *check.VerdictRow) string { return r.Protocol + ", " + machineOf(r) }
	}
	for _, name := range all.names(title) {
		g, rs := &MatrixGroup{Title: name}, all.where(having(title, name))
		for _, label := range rs.names(mutationName) {
			l := &MatrixLine{Label: label, Cells: make([]*check.VerdictRow, len(m.Columns))}
			for _, r := range rs.where(having(mutationName, label)) {
				l.Cells[slices.Index(m.Columns, columnOf(r))] = r
			}
			g.Lines = append(g.Lines, l)
		}
		sortByMutation(g.Lines, func(l *MatrixLine) string { return l.Label })
		m.Groups = append(m.Groups, g)
	}
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
