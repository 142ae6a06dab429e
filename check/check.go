package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Grid is lists of choices; their cross product is the questions that are put
// to the checker, the last list changing fastest.
type Grid struct {
	Arches    []isa.Arch
	Protocols []string
	Plans     []*poke.Protocol // in place of Protocols
	Mutations []string         // "" for none; nil for every one that a protocol offers, and none
	Buffers   []sched.Buffer
	Orders    []sched.Ordering
	Lookups   []int3.Kind
	Refs      []int3.Refs
	Fetches   []cpus.Fetch
	Preempts  []bool
	Machines  [][]cpus.Role
	Sites     []int
	Early     bool
	Patchers  int
	Switch    bool
}

// Question is one model to be explored, and how it came about.
type Question struct {
	explore.Setup
	Protocol string
	Mutation string
	Order    sched.Ordering

	Bug   string // of the museum, in place of a protocol
	Fixed bool

	Model *explore.Model
	about *museum.Bug
}

// storyWidth is how wide a story is printed, in characters.
const storyWidth = 120

// Story tells a scenario of the museum: what happened, where, and what upstream
// did about it. Of a protocol it tells what CPUs do, where its file says so.
func (q *Question) Story() string {
	b := q.about
	switch {
	case b == nil && q.Setup.Protocol != nil && q.Setup.Protocol.StatesPath():
		return q.Model.Code.Path.String() + "\n"
	case b == nil:
		return ""
	}
	return wrapped(fmt.Sprintf("%s (%s)", b.Title, b.Versions), "Source: "+b.Source, b.Story, "Fix: "+b.Fix)
}

// wrapped is paragraphs in lines that people read.
func wrapped(paragraphs ...string) string {
	var out strings.Builder
	for _, p := range paragraphs {
		for line := range strings.SplitSeq(text.WrapSoft(p, storyWidth), "\n") {
			fmt.Fprintln(&out, strings.TrimRight(line, " "))
		}
	}
	return out.String()
}

// Questions builds the model of every combination, so that a wrong one costs
// nothing. A protocol that cannot be had on an architecture is left out where
// there are several of either.
func (g *Grid) Questions() ([]*Question, error) {
	base := []Question{{}}
	base = sim.Cross(base, g.Arches, func(q *Question, v isa.Arch) { q.Arch = v })
	base = sim.Cross(base, g.Plans, func(q *Question, v *poke.Protocol) { q.Setup.Protocol, q.Protocol = v, v.Name })
	if g.Plans == nil {
		base = sim.Cross(base, g.Protocols, func(q *Question, v string) {
			q.Setup.Protocol, q.Protocol = poke.Named(v, q.Arch.Traits()), v
		})
	}
	base = sim.Cross(base, g.Machines, func(q *Question, v []cpus.Role) { q.Roles = v })
	base = sim.Cross(base, g.Sites, func(q *Question, v int) { q.Sites = v })
	base = sim.Cross(base, g.Buffers, func(q *Question, v sched.Buffer) { q.Buffer = v })
	base = sim.Cross(base, g.Orders, func(q *Question, v sched.Ordering) { q.Order, q.Descending = v, v == sched.Descending })
	base = sim.Cross(base, g.Lookups, func(q *Question, v int3.Kind) { q.Lookup = v })
	base = sim.Cross(base, g.Refs, func(q *Question, v int3.Refs) { q.Refs = v })
	var out []*Question
	for _, q := range base {
		q.Early, q.Patchers, q.Switch = g.Early, g.Patchers, g.Switch
		mutations, err := g.mutationsOf(&q)
		if err != nil {
			return nil, err
		}
		list := sim.Cross([]Question{q}, mutations, func(q *Question, v poke.Mutation) { q.Setup.Mutation, q.Mutation = v, v.Name })
		list = sim.Cross(list, g.Fetches, func(q *Question, v cpus.Fetch) { q.Fetch = v })
		list = sim.Cross(list, g.Preempts, func(q *Question, v bool) { q.Preempt = v })
		for i := range list {
			if list[i].Model, err = list[i].Setup.Model(); err != nil {
				return nil, fmt.Errorf("%s on %s: %w", q.Protocol, q.Arch.Traits().Name, err)
			}
			if err := list[i].watched(); err != nil {
				return nil, err
			}
			out = append(out, &list[i])
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no combination is left to check")
	}
	return out, nil
}

// watched refuses a machine in which nobody executes anything while text changes:
// the patcher sits on the only CPU.
func (q *Question) watched() error {
	if len(q.Roles) > 1 {
		return nil
	}
	return fmt.Errorf("--cpus %s: the patcher sits on the only CPU, and nobody executes a site meanwhile: want 2 or more",
		cpus.FormatRoles(q.Roles))
}

// mutationsOf finds the mutations that are asked for.
func (g *Grid) mutationsOf(q *Question) ([]poke.Mutation, error) {
	shape, err := q.Shape()
	if err != nil {
		return nil, err
	}
	if g.Mutations == nil {
		return append([]poke.Mutation{{}}, q.Setup.Protocol.Mutations(shape)...), nil
	}
	var out []poke.Mutation
	for _, name := range g.Mutations {
		if name == "" {
			out = append(out, poke.Mutation{})
			continue
		}
		m, err := q.Setup.Protocol.Mutation(name, shape)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// VerdictRow is the answer to one question.
type VerdictRow struct {
	*Question
	*explore.Result
	Options explore.Options
	Rate    bool // say how fast it was, which is another number every time
}

// Ask explores a question's model.
func (q *Question) Ask(ctx context.Context, o explore.Options) (VerdictRow, error) {
	r, err := explore.Explore(ctx, q.Model, o)
	if err == nil && r.Trace != nil {
		r.Trace.Model = q.Flags()
	}
	return VerdictRow{Question: q, Result: r, Options: o}, err
}

// Covered says in a sentence what a safe verdict rests on; "" for another one.
func (r *VerdictRow) Covered() string {
	if r.Verdict != explore.Safe {
		return ""
	}
	what := r.Bug
	if ofProtocol(r) {
		what = strings.TrimSuffix(r.Model.Code.Traits.Name+" "+r.Protocol+" "+r.Mutation, " ")
	}
	c := &r.Coverage
	line := fmt.Sprintf("%s, cpus %s, sites %d, fetch %s: %d steps of CPUs, %d traps; %d of %d places of plan and path were reached",
		what, cpus.FormatRoles(r.Model.Roles), len(r.Model.Code.Sites), r.Model.Code.Fetch, c.Steps, c.Traps, c.Places, c.Of)
	if len(c.Never) > 0 {
		line += "; never reached: " + strings.Join(c.Never, "; ")
	}
	return wrapped(line)
}

// Flags is the question as the command line spells it.
func (q *Question) Flags() []string {
	if q.Bug != "" {
		args := []string{"--bug", q.Bug}
		if q.Fixed {
			args = append(args, "--fixed")
		}
		return args
	}
	args := []string{"--arch", q.Arch.Traits().Name}
	if file := q.Setup.Protocol.File; file != "" {
		args = append(args, "--plan", file)
	} else {
		args = append(args, "--protocol", q.Protocol)
	}
	if q.Mutation != "" {
		args = append(args, "--mutate", q.Mutation)
	}
	args = append(args, "--cpus", cpus.FormatRoles(q.Roles), "--sites", fmt.Sprint(q.Sites), "--fetch", q.Fetch.String(),
		"--buffer", q.Buffer.String(), "--order", q.Order.String(), "--lookup", q.Lookup.String(), "--refs", q.Refs.String())
	if q.Preempt {
		args = append(args, "--preempt")
	}
	if q.Early {
		args = append(args, "--early")
	}
	if q.Patchers > 1 {
		args = append(args, "--patchers", fmt.Sprint(q.Patchers))
	}
	if q.Switch {
		args = append(args, "--switch")
	}
	return args
}

// Command is the command that asks about a model again.
func Command(flags []string) string {
	words := []string{"textpoke", "check"}
	for _, f := range flags {
		words = append(words, sim.ShellQuote(f))
	}
	return strings.Join(words, " ")
}
