// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	_ "embed"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/poke"
)

// condition is an expression over what attributes says of a question.
type condition struct{ form.Expr }

// UnmarshalText reads an expression.
func (c *condition) UnmarshalText(text []byte) error {
	e, err := form.ParseExpr(string(text))
	if err == nil {
		c.Expr = *e
	}
	return err
}

func (c *condition) holds(q *check.Question) bool {
	ok, err := c.Holds(attributes(q))
	if err != nil {
		panic(err) // a mistake of ours
	}
	return ok
}

// fact is something that is known about real kernels or processors, and what the
// checker would have to answer to say the same.
type fact struct {
	Claim    string          `col:"claim"`
	Source   string          `col:"source"`
	About    condition       `col:"about"`
	Verdict  explore.Verdict `col:"verdict"`
	Property cpus.Property   `col:"property,maybe"` // when unsafe
	// Differs says why rows may differ; for the report, where some do.
	Differs string `col:"differs,maybe"`
}

// harmless says why a protocol stays safe with a defect in it. The first one that
// holds is the explanation; each rests on something that can be taken away, and
// the test of this table takes it away and sees the protocol break.
type harmless struct {
	Name string    `col:"name"`
	Why  string    `col:"why"`
	Of   condition `col:"holds"`
}

var (
	//go:embed facts.csv
	factsText string
	//go:embed harmless.csv
	harmlessText string

	facts        = sheet.Must[fact]("facts.csv", factsText)
	harmlessOnes = sheet.Must[harmless]("harmless.csv", harmlessText)
)

// attributes are what facts and explanations know of a question. A tail is what is behind a breakpoint,
// a pair is a site of two instructions.
func attributes(q *check.Question) form.Row {
	s, c, p := shapeOf(q), q.Model.Code, q.Setup.Protocol
	return form.Row{
		"mutation": q.Mutation, "fetch": q.Fetch.String(), "preempt": q.Preempt, "sites": len(c.Sites),
		"traps": p.Traps, "one_store": p.OneStore, "settles": p.Settles(s), "literals": s.Literals(), "tail": s.Tail(),
		"one_word": !s.Tail() && c.Len == c.Traits.FetchLen, "pair": pair(q),
		"stops": sends(q, poke.StopMachine), "syncs": sends(q, poke.Sync),
		"masked_rounds": c.Traits.MaskedRounds, "round_at_end": c.Traits.RoundAtEnd, "known_unsafe": knownUnsafe(q) != "",
	}
}

// pair tells whether a site is two instructions.
func pair(q *check.Question) bool {
	return q.Setup.Protocol.Layout == isa.Pair && q.Model.Code.Several()
}

// pairPreempted tells whether tasks can be preempted between the two.
func pairPreempted(q *check.Question) bool { return q.Preempt && pair(q) }

// says tells whether a row says the same as the fact.
func (f *fact) says(r *check.VerdictRow) bool {
	return r.Verdict == f.Verdict && (r.Verdict != explore.Unsafe || r.Violation.Property == f.Property)
}

// whyHarmless is the explanation of a safe row that is mutated; nil if there is none.
func whyHarmless(q *check.Question) *harmless {
	return experiments.Find(harmlessOnes, func(h *harmless) bool { return h.Of.holds(q) })
}
