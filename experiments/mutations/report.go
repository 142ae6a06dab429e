// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
)

type (
	// reportBreak is one way in which a mutation breaks protocols.
	reportBreak struct{ Mutation, Summary, Property, Steps, Where string }
	// reportSafe is one reason why mutations do not.
	reportSafe struct {
		*harmless
		Where []string
	}
	// reportFact is a fact, and the rows that are about it.
	reportFact struct {
		*fact
		about, differ rows
	}
)

// Rows are how many rows are about the fact, Agree those that say the same.
func (f reportFact) Rows() int  { return len(f.about) }
func (f reportFact) Agree() int { return len(f.about) - len(f.differ) }

// Telling, Harmless and Silent count the rows with a mutation: those that say something of it, the safe ones of
// them, and those that say nothing.
func (a *Answer) Telling() int  { return len(a.telling()) }
func (a *Answer) Harmless() int { return len(a.telling().where(isSafe)) }
func (a *Answer) Silent() int   { return len(a.all().where(mutated)) - a.Telling() }

// Machines are what the rows are asked about, States what all searches reached together.
func (a *Answer) Machines() string { return strings.Join(a.all().names(machineOf), ", of ") }
func (a *Answer) States() (sum uint64) {
	for _, row := range a.all() {
		sum += row.States
	}
	return sum
}

// Places is what the mutations need to show.
func (a *Answer) Places() (out []*placement) {
	for _, m := range a.mutations(a.all()) {
		out = append(out, placed(m))
	}
	return out
}

// mutations are those among the rows, as they are listed.
func (a *Answer) mutations(rs rows) []string {
	names, order := rs.where(mutated).names(mutationName), poke.MutationNames()
	slices.SortFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return names
}

// Lazy tells whether rounds that may leave out CPUs had none to leave out.
func (a *Answer) Lazy() bool {
	lazy := a.all().where(func(r *check.VerdictRow) bool { return r.Setup.Protocol.Lazy(shapeOf(r.Question)) })
	return len(lazy) > 0 && !slices.ContainsFunc(lazy, func(r *check.VerdictRow) bool {
		return slices.Contains(r.Roles, cpus.Isolated)
	})
}

// SameAs says where native is another of the protocols that were asked about.
func (a *Answer) SameAs() string {
	var out []string
	all := a.all()
	for _, r := range all.where(unmutated, having(protocolName, poke.Native)) {
		for _, p := range poke.Protocols() {
			line := fmt.Sprintf("%s on %s", p.Name, archName(r))
			if p.Summary == r.Setup.Protocol.Summary && len(all.where(having(protocolName, p.Name))) > 0 &&
				!slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return strings.Join(out, ", ")
}

// Breaks is what mutations do.
func (a *Answer) Breaks() (out []reportBreak) {
	broken := a.telling().where(isUnsafe)
	for _, m := range a.mutations(broken) {
		of := broken.where(having(mutationName, m))
		for i, property := range of.names(propertyName) {
			some := of.where(having(propertyName, property))
			b := reportBreak{Mutation: m, Summary: summaryOf(m), Property: property, Steps: steps(some), Where: a.places(some)}
			if i > 0 {
				b.Mutation, b.Summary = "", ""
			}
			out = append(out, b)
		}
	}
	return out
}

func summaryOf(mutation string) string {
	return experiments.First(poke.AllMutations(), func(m poke.Mutation) bool { return m.Name == mutation }).Summary
}

// steps is the range of the rows' depths.
func steps(rs rows) string {
	lo, hi := rs[0].Depth, rs[0].Depth
	for _, r := range rs {
		lo, hi = min(lo, r.Depth), max(hi, r.Depth)
	}
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// because are the rows that are safe for a reason; nil for none that is known.
func (a *Answer) because(h *harmless) rows {
	return a.telling().where(isSafe, func(row *check.VerdictRow) bool { return whyHarmless(row.Question) == h })
}

// list says of each mutation of some rows where they are.
func (a *Answer) list(rs rows) (out []string) {
	for _, m := range a.mutations(rs) {
		out = append(out, m+": "+a.places(rs.where(having(mutationName, m))))
	}
	return out
}

// Safe is why mutations do nothing, Unexplained those of which it is not known.
func (a *Answer) Safe() (out []reportSafe) {
	for i := range harmlessOnes {
		if of := a.because(&harmlessOnes[i]); len(of) > 0 {
			out = append(out, reportSafe{&harmlessOnes[i], a.list(of)})
		}
	}
	return out
}

func (a *Answer) Unexplained() []string { return a.list(a.because(nil)) }

// Facts holds the rows against what is known.
func (a *Answer) Facts() (out []reportFact) {
	for i := range facts {
		f := &facts[i]
		about := a.all().where(func(row *check.VerdictRow) bool {
			return row.Verdict != explore.Incomplete && f.About.holds(row.Question)
		})
		if len(about) > 0 {
			out = append(out, reportFact{f, about, about.where(func(row *check.VerdictRow) bool { return !f.says(row) })})
		}
	}
	return out
}

// Says are the verdicts of those that differ, with where they are.
func (a *Answer) Says(f reportFact) string {
	rs := f.differ
	var parts []string
	if safe := rs.where(isSafe); len(safe) > 0 {
		parts = append(parts, "safe: "+a.places(safe))
	}
	broken := rs.where(isUnsafe)
	for _, p := range broken.names(propertyName) {
		some := broken.where(having(propertyName, p))
		parts = append(parts, fmt.Sprintf("%s after %s steps: %s", p, steps(some), a.places(some)))
	}
	return strings.Join(parts, ". ")
}

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
