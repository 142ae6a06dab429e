// SPDX-License-Identifier: Apache-2.0

// Package mutations is the matrix of protocols and mutations: the grid of questions,
// the answers that are known from elsewhere, a plot, and a report.
package mutations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/axis"
)

// Config says which combinations are put to the checker, and what a search may cost.
// Its fields are the flags of mutations.experiment.
type Config struct {
	Lists    map[string]*string // by the checker's axis
	Machines []string           // as the axis cpus has them
	Sites    []int
	Preempt  bool
	check.Search
}

var spec = experiments.Spec[Config, check.VerdictRow]{
	Form: experiments.Text("mutations/mutations.experiment"), Cells: cells, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*choice.Field {
	c.Lists = map[string]*string{}
	own := []*choice.Field{choice.Strings(&c.Machines, "cpus", "machine", "2", check.Axes.Named("cpus").Doc, nil),
		choice.Counts(&c.Sites, "sites", "2", check.Axes.Named("sites").Doc, 1, explore.MaxSites)}
	for name, preset := range map[string]string{"arch": strings.Join(cpus.ArchNames(), ","), "protocol": strings.Join(poke.Names(), ","),
		"fetch": strings.Join(cpus.FetchNames(), ",")} {
		c.Lists[name] = new(string)
		own = append(own, experiments.Axis(check.Axes.Named(name), preset, c.Lists[name]))
	}
	return append(own, c.Search.Fields()...)
}

// columns are those of the checker.
var columns = results.Of(check.Columns, func(r check.VerdictRow) *check.VerdictRow { return &r })

// choices are what the Config asks about, with every mutation. Buffers, orders, indexes
// and counts are left to the experiment.
func (c *Config) choices() axis.Choices {
	choices := axis.Choices{"cpus": c.Machines, "preempt": {strconv.FormatBool(c.Preempt)}, "mutate": {check.AllMutations}}
	choices["sites"] = spelling.Each(c.Sites, strconv.Itoa)
	for name, list := range c.Lists {
		choices[name] = strings.Split(*list, ",")
	}
	return choices
}

func measure(ctx context.Context, s *experiments.Study[Config, check.VerdictRow]) (any, error) {
	questions, err := Questions(s.Config.choices())
	if err != nil {
		return nil, err
	}
	o, err := s.Config.Options()
	if err != nil {
		return nil, err
	}
	if s.Progress != nil {
		o.Watch = func(p explore.Progress) { s.Progress(p.String()) }
	}
	cut, known := false, map[string]*explore.Result{}
	err = experiments.Each(ctx, s, questions, func(q *check.Question) (r check.VerdictRow, err error) {
		same := *q
		same.Protocol = q.Setup.Protocol.Summary // native is another protocol under a name of its own
		if r = (check.VerdictRow{Question: q, Result: known[same.String()], Options: o}); r.Result != nil {
			return r, nil
		}
		r, err = q.Ask(ctx, o)
		known[same.String()] = r.Result
		if err == nil && r.Verdict == explore.Incomplete {
			cut = true
			s.Log.Warn(r.CutShort())
		}
		return r, err
	})
	if err == nil && cut {
		err = experiments.ErrLimits
	}
	a := &Answer{s}
	s.No = a.Unexpected()
	return a, err
}

// cells are where a row stands in the picture and how it looks there (lines are those of the protocols,
// each as it is and with the mutations as they are listed; properties have their initials), and what the report says of it.
var cells = map[string]func(check.VerdictRow) any{
	"line":   func(r check.VerdictRow) any { return r.Protocol + ", " + cmp.Or(r.Mutation, "(no mutation)") },
	"number": func(r check.VerdictRow) any { return slices.Index(poke.MutationNames(), r.Mutation) },
	"place": func(r check.VerdictRow) any {
		return 100*slices.Index(poke.Names(), r.Protocol) + slices.Index(poke.MutationNames(), r.Mutation)
	},
	"code": func(r check.VerdictRow) any { return code(&r) },
	"mark": func(r check.VerdictRow) any {
		if r.Verdict == explore.Incomplete {
			return "cut short: nothing is known"
		}
		return outcome(&r) + " (" + code(&r) + ")"
	},
	"base":         func(r check.VerdictRow) any { return base(&r) },
	"machine":      func(r check.VerdictRow) any { return machineOf(&r) },
	"known_unsafe": func(r check.VerdictRow) any { return results.OrEmpty(knownUnsafe(r.Question)) },
	"reason": func(r check.VerdictRow) any {
		why := -1
		if r.Verdict == explore.Safe {
			why = slices.IndexFunc(harmlessOnes, func(h harmless) bool { return h.Of.holds(r.Question) })
		}
		return results.If(r.Verdict == explore.Safe, why)
	},
	"summary": func(r check.VerdictRow) any {
		return spelling.First(poke.AllMutations(), func(m poke.Mutation) bool { return m.Name == r.Mutation }).Summary
	},
	"needs": func(r check.VerdictRow) any {
		return spelling.First(placements, func(p placement) bool { return p.Mutation == r.Mutation }).Needs
	},
	"lazy":     func(r check.VerdictRow) any { return r.Setup.Protocol.Lazy(shapeOf(r.Question)) },
	"isolated": func(r check.VerdictRow) any { return slices.Contains(r.Roles, cpus.Isolated) },
}

// code is the initials of what breaks.
func code(r *check.VerdictRow) (letters string) {
	if r.Verdict == explore.Incomplete {
		return "?"
	}
	for word := range strings.SplitSeq(outcome(r), "-") {
		letters += strings.ToUpper(word[:1])
	}
	return letters
}

// outcome is what breaks, or else the verdict.
func outcome(r *check.VerdictRow) string {
	if r.Violation != nil {
		return string(r.Violation.Property)
	}
	return string(r.Verdict)
}

// Questions are the questions of the matrix: every protocol that was chosen as it is and
// with every mutation that it offers, put where it can show.
func Questions(choices axis.Choices) ([]*check.Question, error) {
	all, _, err := check.Questions(choices)
	if err != nil {
		return nil, err
	}
	var out []*check.Question
	asked := map[string]bool{}
	for _, q := range all {
		if err := place(q); err != nil {
			return nil, err
		}
		if key := strings.Join(q.Flags(), " "); !asked[key] {
			asked[key] = true
			out = append(out, q)
		}
	}
	return out, nil
}

// Answer is what the rows say that were finished, in the order of the questions.
type Answer struct {
	*experiments.Study[Config, check.VerdictRow]
}

// knownUnsafe says why a protocol cannot be safe on an architecture in the first
// place; "" where it can.
func knownUnsafe(q *check.Question) string {
	p, c := q.Setup.Protocol, q.Model.Code
	if p.OneStore && !c.Arch.AtomicStore(c.Sites[0], c.Len) {
		if q.Model.Code.Fetch == cpus.Atomic {
			return "no round ends the old calls before the ops is released: the protocol sends none there"
		}
		return "no store replaces a whole site at once"
	}
	if _, ok := errors.AsType[*poke.ImpossibleError](p.Compile(shapeOf(q), func(func(poke.Range) bool) {}, func(poke.Step) {})); ok {
		return "its rounds cannot reach CPUs that have interrupts masked"
	}
	return ""
}

// shapeOf is the shape of a question's updates.
func shapeOf(q *check.Question) poke.Shape {
	c := q.Model.Code
	return poke.Shape{Traits: c.Traits, Len: c.Len, Patches: len(c.Sites), Detach: true}
}

// sends tells whether the protocol, without its mutation, has a step like that.
func sends(q *check.Question, op poke.Op) (found bool) {
	one := func(yield func(poke.Range) bool) { yield(poke.Range{From: 0, To: 1}) }
	s := shapeOf(q)
	s.Patches = 1
	q.Setup.Protocol.Unfold(s, one, func(st poke.Step) { found = found || st.Op == op })
	return found
}

// placement says what a mutation needs to show, beyond sites that are enabled and
// disabled again while another CPU executes them.
type placement struct {
	Mutation string `col:"mutation,key"`
	Needs    string `col:"needs"` // for the report
}

// placements has an entry for each mutation.
var placements = sheet.Must[placement]("placements.csv", experiments.Text("mutations/placements.csv"))

// put changes the questions of mutations that show only then.
var put = map[string]func(*check.Question){
	"unsorted-batch": func(q *check.Question) { q.Order, q.Lookup = sched.Descending, int3.Vector },
	"overfull-batch": func(q *check.Question) { q.Buffer = sched.Buffer{Slots: 1} },
}

// place puts a question's mutation where it can show.
func place(q *check.Question) error {
	if q.Mutation == "" {
		return nil
	}
	if experiments.Find(placements, func(p *placement) bool { return p.Mutation == q.Mutation }) == nil {
		return fmt.Errorf("placements.csv does not say what mutation %s needs to show", q.Mutation)
	}
	if put[q.Mutation] == nil {
		return nil
	}
	put[q.Mutation](q)
	return q.Build()
}

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
	facts        = sheet.Must[fact]("facts.csv", experiments.Text("mutations/facts.csv"))
	harmlessOnes = sheet.Must[harmless]("harmless.csv", experiments.Text("mutations/harmless.csv"))
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

// says tells whether a row says the same as the fact.
func (f *fact) says(r *check.VerdictRow) bool {
	return r.Verdict == f.Verdict && (r.Verdict != explore.Unsafe || r.Violation.Property == f.Property)
}
