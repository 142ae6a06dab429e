// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Question is one model to be explored, and how it came about.
type Question struct {
	sim.Config // what of it the checker knows: see Axes
	Sites      int
	Offset     explore.Offset // where sites lie in an aligned quadword
	Workload   explore.Workload
	Early      bool // traced code runs on the way in from user space
	Patchers   int
	Contend    bool // every patcher wants all sites
	Switch     bool // sites go over from one ops to another

	Bug   string // of the museum, in place of a protocol
	Fixed bool

	Setup explore.Setup // that Build makes of it
	Model *explore.Model
	about *museum.Bug
}

// storyWidth is how wide a story is printed where no screen says it, in characters.
const storyWidth = 120

// Story tells a scenario of the museum: what happened, where, and what upstream
// did about it. Of a protocol it tells what CPUs do, where its file says so. The screen
// is so many characters wide, 0 for any.
func (q *Question) Story(width int) string {
	b := q.about
	switch {
	case b == nil && q.Setup.Protocol != nil && q.Setup.Protocol.StatesPath():
		return q.Model.Code.Path.String() + "\n"
	case b == nil:
		return ""
	}
	return Wrapped(width, fmt.Sprintf("%s (%s)", b.Title, b.Versions), "Source: "+b.Source, b.Story, "Fix: "+b.Fix)
}

// Wrapped is paragraphs in lines that people read.
func Wrapped(width int, paragraphs ...string) string {
	width = cmp.Or(width, storyWidth)
	var out strings.Builder
	for _, p := range paragraphs {
		for line := range strings.SplitSeq(text.WrapSoft(p, width), "\n") {
			fmt.Fprintln(&out, strings.TrimRight(line, " "))
		}
	}
	return out.String()
}

// Build makes the model of what is asked.
func (q *Question) Build() error {
	if err := q.build(); err != nil {
		return err
	}
	var err error
	if q.Model, err = q.Setup.Model(); err != nil {
		return fmt.Errorf("%s on %s: %w", q.Protocol, q.Arch.Traits().Name, err)
	}
	return q.watched()
}

// watched refuses a machine in which no CPU executes anything while text changes: the patcher sits
// on the only CPU.
func (q *Question) watched() error {
	if len(q.Roles) > 1 {
		return nil
	}
	return choice.Errorf("%s %s: the patcher sits on the only CPU, and nobody executes a site meanwhile: want 2 or more",
		choice.Name("cpus"), cpus.FormatRoles(q.Roles))
}

// build makes the setup.
func (q *Question) build() error {
	arch := q.Arch
	if q.Layout != "" {
		var err error
		if arch, err = cpus.WithLayout(arch, q.Layout); err != nil {
			return err
		}
	}
	q.Setup = explore.Setup{
		Arch: arch, Protocol: q.Definition(), Roles: q.Roles, Sites: q.Sites, Offset: q.Offset, Fetch: q.Fetch, Preempt: q.Preempt,
		Buffer: q.Buffer, Descending: q.Order == sched.Descending, Lookup: q.Lookup, Refs: q.Refs,
		Early: q.Early, Patchers: q.Patchers, Contend: q.Contend, Switch: q.Switch, Workload: q.Workload,
	}
	shape, err := q.Setup.Shape()
	if err == nil && q.Layout == "" && q.Plan != nil && !q.Plan.StatesPath() && shape.Literals() && !q.Plan.ChangesLiterals(shape) {
		// A plan that changes no literal is not about ftrace's sites: what they call would stay as it was.
		if q.Setup.Arch, err = cpus.WithLayout(arch, isa.LayoutPlain); err == nil {
			shape, err = q.Setup.Shape()
		}
	}
	if err == nil && q.Mutation != "" {
		q.Setup.Mutation, err = q.Setup.Protocol.Mutation(q.Mutation, shape)
	}
	return err
}

// VerdictRow is the answer to one question.
type VerdictRow struct {
	*Question
	*explore.Result
	Options explore.Options
	Swarm   uint64 // searches of the swarm; 0 where it was one search of everything
	Rate    bool   // say how fast it was, which is another number every time
}

// Ask explores a question's model.
func (q *Question) Ask(ctx context.Context, o explore.Options) (VerdictRow, error) {
	r, err := explore.Explore(ctx, q.Model, o)
	if err == nil && r.Trace != nil {
		r.Trace.Model = q.Flags()
	}
	return VerdictRow{Question: q, Result: r, Options: o}, err
}

// Roam is one search of a swarm through a question's model.
func (q *Question) Roam(ctx context.Context, by explore.Member) (*explore.Result, error) {
	r, err := explore.Roam(ctx, q.Model, by)
	if err == nil && r.Trace != nil {
		r.Trace.Model = q.Flags()
	}
	return r, err
}

// RestsOn says in a sentence what a verdict rests on: what it takes for granted, and a safe
// one on what was covered, too. The screen is so many characters wide, 0 for any.
func (r *VerdictRow) RestsOn(width int) string {
	what := r.Bug
	if ofProtocol(r) {
		what = strings.TrimSuffix(r.Model.Code.Traits.Name+" "+r.Protocol+" "+r.Mutation, " ")
	}
	line := fmt.Sprintf("%s, cpus %s, sites %d, fetch %s: ", what, cpus.FormatRoles(r.Model.Roles),
		len(r.Model.Code.Sites), r.Model.Code.Fetch)
	if r.Verdict == explore.Safe {
		line += r.covered() + "; promises: " + r.Model.Promises()
	} else {
		line += string(r.Verdict)
	}
	return Wrapped(width, line+"; assumes: "+r.Model.Assumes())
}

// covered says what was looked at, of a safe verdict.
func (r *VerdictRow) covered() string {
	c := &r.Coverage
	line := fmt.Sprintf("%d steps of CPUs, %d traps; %d of %d places of plan and path were reached", c.Steps, c.Traps,
		c.Places, c.Of)
	if len(c.Never) > 0 {
		line += "; never reached: " + strings.Join(c.Never, "; ")
	}
	if on := r.Model.RestsOn(); on != "" {
		line += "; rests on " + on
	}
	if r.Options.Liveness {
		line += "; every update can end and every CPU come back"
	}
	return line
}

// Flags are the words of a command line that ask it.
func (q *Question) Flags() []string { return q.flags(Axes.Flags) }

// Short are as many of them as it takes.
func (q *Question) Short() []string { return q.flags(Axes.Short) }

func (q *Question) flags(of func(*Question) []string) []string {
	switch {
	case q.Bug == "":
		return of(q)
	case q.Fixed:
		return []string{"--bug", q.Bug, "--fixed"}
	}
	return []string{"--bug", q.Bug}
}

// String is the command that asks it.
func (q *Question) String() string { return Command(q.Flags()) }

// Command is the command that asks about a model again.
func Command(flags []string) string { return sim.Command(append([]string{"check"}, flags...)...) }
