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

// mutationReport is what the report's template is filled with.
type mutationReport struct {
	Answered, Incomplete int

	Sound, SoundSafe        int
	KnownUnsafe, Unexpected []string
	Headline                string
	Telling, Harmless       int
	Silent                  int
	Breaks                  []reportBreak
	Safe                    []reportSafe
	Unexplained             []string

	Machines      string
	SameAs        string
	States        uint64
	Places        []placement
	Lazy, Preempt bool

	Facts         []reportFact
	Disagreements []reportDisagreement
}

type (
	// reportBreak is one way in which a mutation breaks protocols.
	reportBreak struct{ Mutation, Summary, Property, Steps, Where string }
	// reportSafe is one reason why mutations do not.
	reportSafe struct {
		Name, Why string
		Where     []string
	}
	reportFact struct {
		Claim, Source, Should string
		Agree, Rows           int
	}
	reportDisagreement struct{ Claim, Says, Why string }
)

// report is made of the rows: what they do not say it does not say either.
func (a *Answer) report() *mutationReport {
	all, telling := a.all(), a.telling()
	r := &mutationReport{
		Answered: len(a.Rows), Incomplete: len(all.where(incomplete)),
		Sound: len(all.where(unmutated)), SoundSafe: len(all.where(unmutated, isSafe)),
		Headline: a.headline(), Telling: len(telling), Harmless: len(telling.where(isSafe)),
		Silent:   len(all.where(mutated)) - len(telling),
		Machines: strings.Join(all.names(machineOf), ", of "),
		Preempt:  len(all.where(func(r *check.VerdictRow) bool { return r.Preempt })) > 0,
		Lazy:     a.lazyInVain(), SameAs: strings.Join(a.sameAs(), ", "),
	}
	for _, row := range all {
		r.States += row.States
	}
	r.KnownUnsafe, r.Unexpected = a.brokenAsMeant()
	a.breaks(r)
	a.explain(r)
	for _, m := range a.mutations(all) {
		r.Places = append(r.Places, *placed(m))
	}
	a.compare(r)
	return r
}

// mutations are those among the rows, as they are listed.
func (a *Answer) mutations(rs rows) []string {
	names := rs.where(mutated).names(mutationName)
	sortByMutation(names, func(s string) string { return s })
	return names
}

// lazyInVain tells whether rounds that may leave out CPUs had none to leave out.
func (a *Answer) lazyInVain() bool {
	lazy := a.all().where(func(r *check.VerdictRow) bool { return r.Setup.Protocol.Lazy(shapeOf(r.Question)) })
	return len(lazy) > 0 && !slices.ContainsFunc(lazy, func(r *check.VerdictRow) bool {
		return slices.Contains(r.Roles, cpus.Isolated)
	})
}

// sameAs says where native is another of the protocols that were asked about.
func (a *Answer) sameAs() (out []string) {
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
	return out
}

// breaks says what mutations do.
func (a *Answer) breaks(r *mutationReport) {
	broken := a.telling().where(isUnsafe)
	for _, m := range a.mutations(broken) {
		of := broken.where(having(mutationName, m))
		for i, property := range of.names(propertyName) {
			some := of.where(having(propertyName, property))
			b := reportBreak{Mutation: m, Summary: summaryOf(m), Property: property, Steps: steps(some), Where: a.places(some)}
			if i > 0 {
				b.Mutation, b.Summary = "", ""
			}
			r.Breaks = append(r.Breaks, b)
		}
	}
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

// explain says why mutations do nothing.
func (a *Answer) explain(r *mutationReport) {
	safe := a.telling().where(isSafe)
	list := func(rs rows) (out []string) {
		for _, m := range a.mutations(rs) {
			out = append(out, m+": "+a.places(rs.where(having(mutationName, m))))
		}
		return out
	}
	because := func(h *harmless) func(*check.VerdictRow) bool {
		return func(row *check.VerdictRow) bool { return whyHarmless(row.Question) == h }
	}
	for i := range harmlessOnes {
		h := &harmlessOnes[i]
		if of := safe.where(because(h)); len(of) > 0 {
			r.Safe = append(r.Safe, reportSafe{h.Name, h.Why, list(of)})
		}
	}
	r.Unexplained = list(safe.where(because(nil)))
}

// compare holds the rows against what is known.
func (a *Answer) compare(r *mutationReport) {
	for i := range facts {
		f := &facts[i]
		about := a.all().where(func(row *check.VerdictRow) bool {
			return row.Verdict != explore.Incomplete &&
				f.About.holds(row.Question)
		})
		if len(about) == 0 {
			continue
		}
		should := string(f.Verdict)
		if f.Property != "" {
			should += ": " + string(f.Property)
		}
		differ := about.where(func(row *check.VerdictRow) bool { return !f.says(row) })
		r.Facts = append(r.Facts, reportFact{f.Claim, f.Source, should, len(about) - len(differ), len(about)})
		if len(differ) > 0 {
			r.Disagreements = append(r.Disagreements, reportDisagreement{f.Claim, a.says(differ), f.Differs})
		}
	}
}

// says are the verdicts of rows, with where they are.
func (a *Answer) says(rs rows) string {
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
