// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/experiments"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// rows are some of the answer's.
type rows []*check.VerdictRow

// where are the rows that all conditions hold of.
func (rs rows) where(conditions ...func(*check.VerdictRow) bool) rows {
	return experiments.Where(rs, conditions...)
}

func mutated(r *check.VerdictRow) bool   { return r.Mutation != "" }
func unmutated(r *check.VerdictRow) bool { return r.Mutation == "" }
func isSafe(r *check.VerdictRow) bool    { return r.Verdict == explore.Safe }
func isUnsafe(r *check.VerdictRow) bool  { return r.Verdict == explore.Unsafe }

// all are all rows.
func (a *Answer) all() (out rows) {
	for i := range a.Rows {
		out = append(out, &a.Rows[i])
	}
	return out
}

// base names the row without any mutation that a row is to be compared with.
func base(r *check.VerdictRow) string {
	return strings.Join([]string{r.Arch.Traits().Name, r.Protocol, machineOf(r), r.Fetch.String(), fmt.Sprint(r.Preempt)},
		"/")
}

// telling are the mutated rows whose protocol is safe without the mutation: the
// others say nothing about it.
func (a *Answer) telling() rows {
	sound := map[string]bool{}
	for _, r := range a.all().where(unmutated, isSafe) {
		sound[base(r)] = true
	}
	return a.all().where(mutated, func(r *check.VerdictRow) bool { return sound[base(r)] })
}

// Headline is the answer in one line.
func (a *Answer) Headline() string {
	t := a.telling()
	if len(t) == 0 {
		all := a.all()
		return fmt.Sprintf("%d of %d combinations can break", len(all.where(isUnsafe)), len(all))
	}
	return fmt.Sprintf("A single defect breaks %d of %d combinations that are safe without it", len(t.where(isUnsafe)),
		len(t))
}

// names are some part of each row, each name once, in the order in which they come.
func (rs rows) names(of func(*check.VerdictRow) string) []string { return experiments.Distinct(rs, of) }

// Parts of rows.
func archName(r *check.VerdictRow) string     { return r.Arch.Traits().Name }
func protocolName(r *check.VerdictRow) string { return r.Protocol }
func fetchName(r *check.VerdictRow) string    { return r.Fetch.String() }
func propertyName(r *check.VerdictRow) string { return string(r.Violation.Property) }

// having are the rows in which a part has this name.
func having(of func(*check.VerdictRow) string, name string) func(*check.VerdictRow) bool {
	return func(r *check.VerdictRow) bool { return of(r) == name }
}

// places says where rows are: the architectures, each with its protocols, and the
// fetch models where they are not all that were asked about.
func (a *Answer) places(rs rows) string {
	var parts, arches []string
	flush := func(what string) {
		if len(arches) > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(arches, ", "), what))
		}
		arches = nil
	}
	last := ""
	for _, arch := range rs.names(archName) {
		what := a.protocolsOf(rs.where(having(archName, arch)))
		if what != last {
			flush(last)
		}
		arches, last = append(arches, arch), what
	}
	flush(last)
	return strings.Join(parts, "; ")
}

// protocolsOf are the protocols of one architecture's rows, those together that
// have the same fetch models.
func (a *Answer) protocolsOf(rs rows) string {
	asked := len(a.all().names(fetchName))
	var models, parts []string
	protocols := map[string][]string{}
	for _, p := range rs.names(protocolName) {
		f := rs.where(having(protocolName, p)).names(fetchName)
		model := ""
		if len(f) < asked {
			model = " with fetch " + strings.Join(f, " or ")
		}
		if protocols[model] == nil {
			models = append(models, model)
		}
		protocols[model] = append(protocols[model], p)
	}
	for _, m := range models {
		parts = append(parts, strings.Join(protocols[m], ", ")+m)
	}
	return strings.Join(parts, "; ")
}

// asMeant labels the rows of a protocol without any defect.
const asMeant = "(no mutation)"

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

// sortByMutation sorts as mutations are listed, what has none first.
func sortByMutation[T any](list []T, of func(T) string) {
	order := poke.MutationNames()
	slices.SortStableFunc(list, func(a, b T) int { return slices.Index(order, of(a)) - slices.Index(order, of(b)) })
}
