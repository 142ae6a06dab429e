// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Unexpected is the protocols that break without any mutation and are not among
// those that cannot be safe there in the first place; nil if there are none.
func (a *Answer) Unexpected() error {
	unexpected := a.BrokenOtherwise()
	if len(unexpected) == 0 {
		return nil
	}
	return fmt.Errorf("protocols break without any mutation: %s", strings.Join(unexpected, "; "))
}

// KnownUnsafe is what cannot be safe in the first place and is not, BrokenOtherwise the rest.
func (a *Answer) KnownUnsafe() []string {
	known, _ := a.brokenAsMeant()
	return known
}

func (a *Answer) BrokenOtherwise() []string {
	_, unexpected := a.brokenAsMeant()
	return unexpected
}

// brokenAsMeant says what breaks without any mutation, and where: what cannot be
// safe there in the first place, with the reason, and the rest.
func (a *Answer) brokenAsMeant() (known, unexpected []string) {
	broken := spelling.Where(a.Table(), having("mutation", ""), having("verdict", string(explore.Unsafe)))
	split(broken, "protocol", func(_ string, of form.Rows) {
		split(of, "property", func(property string, some form.Rows) {
			split(some, "known_unsafe", func(why string, rows form.Rows) {
				line := property + ": " + a.Places(rows)
				if why == "" {
					unexpected = append(unexpected, line)
				} else {
					known = append(known, line+"; "+why)
				}
			})
		})
	})
	return known, unexpected
}

// States are what all searches reached together.
func (a *Answer) States() uint64 {
	return spelling.Sum(spelling.Each(a.Rows, func(row check.VerdictRow) uint64 { return row.States }))
}

// Telling are the mutated rows whose protocol is safe without the mutation: the
// others say nothing about it.
func (a *Answer) Telling() form.Rows {
	sound := map[string]bool{}
	for _, r := range spelling.Where(a.Table(), having("mutation", ""), having("verdict", string(explore.Safe))) {
		sound[cell(r, "base")] = true
	}
	return spelling.Where(a.Table(), func(r form.Row) bool {
		return cell(r, "mutation") != "" && sound[cell(r, "base")]
	})
}

// Silent is how many mutated rows are not among them.
func (a *Answer) Silent() int {
	return len(a.Table()) - len(spelling.Where(a.Table(), having("mutation", ""))) - len(a.Telling())
}

// base names the row without any mutation that a row is to be compared with.
func base(r *check.VerdictRow) string {
	return strings.Join([]string{r.Arch.Traits().Name, r.Protocol, machineOf(r), r.Fetch.String(), fmt.Sprint(r.Preempt)},
		"/")
}

// Reasons are why mutations do nothing, by the numbers of the column reason.
func (a *Answer) Reasons() []harmless { return harmlessOnes }

// reportFact is a fact, and the rows that are about it.
type reportFact struct {
	*fact
	About, Differ form.Rows
}

// Agree is how many of them say the same.
func (f reportFact) Agree() int { return len(f.About) - len(f.Differ) }

// Facts holds the rows against what is known.
func (a *Answer) Facts() (out []reportFact) {
	for i := range facts {
		f := reportFact{fact: &facts[i]}
		for k, row := range a.Rows {
			if row.Verdict == explore.Incomplete || !f.fact.About.holds(row.Question) {
				continue
			}
			f.About = append(f.About, a.Table()[k])
			if !f.says(&row) {
				f.Differ = append(f.Differ, a.Table()[k])
			}
		}
		if len(f.About) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// cell is a cell as people read it.
func cell(r form.Row, column string) string { return form.Said("", r[column]) }

// having are the rows that have this cell.
func having(column, is string) func(form.Row) bool {
	return func(r form.Row) bool { return cell(r, column) == is }
}

// split goes through the rows by the cells of a column, in the order in which these come.
func split(rows form.Rows, column string, each func(is string, some form.Rows)) {
	for _, is := range spelling.Distinct(rows, func(r form.Row) string { return cell(r, column) }) {
		each(is, spelling.Where(rows, having(column, is)))
	}
}

// Places says where rows are: the architectures, each with its protocols, and the
// fetch models where they are not all that were asked about.
func (a *Answer) Places(rows form.Rows) string {
	var parts, arches []string
	flush := func(what string) {
		if len(arches) > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(arches, ", "), what))
		}
		arches = nil
	}
	last := ""
	split(rows, "arch", func(arch string, on form.Rows) {
		what := a.protocolsOf(on)
		if what != last {
			flush(last)
		}
		arches, last = append(arches, arch), what
	})
	flush(last)
	return strings.Join(parts, "; ")
}

// protocolsOf are the protocols of one architecture's rows, those together that
// have the same fetch models.
func (a *Answer) protocolsOf(rows form.Rows) string {
	fetch := func(r form.Row) string { return cell(r, "fetch") }
	asked := len(spelling.Distinct(a.Table(), fetch))
	var models, parts []string
	protocols := map[string][]string{}
	split(rows, "protocol", func(p string, of form.Rows) {
		model, f := "", spelling.Distinct(of, fetch)
		if len(f) < asked {
			model = " with fetch " + strings.Join(f, " or ")
		}
		if protocols[model] == nil {
			models = append(models, model)
		}
		protocols[model] = append(protocols[model], p)
	})
	for _, m := range models {
		parts = append(parts, strings.Join(protocols[m], ", ")+m)
	}
	return strings.Join(parts, "; ")
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
