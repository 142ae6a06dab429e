// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timed"
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
		fmt.Fprintln(&out, results.Folded(p, width, 0))
	}
	return out.String()
}

// Build makes the question's model.
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
	return choice.Errorf("%s %s: the patcher sits on the only CPU, and no other executes a site meanwhile: want 2 or more",
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
		// A plan that changes no literal is not about ftrace's sites: they would still call the same ops.
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

// RestsOn says in a sentence on which assumptions a verdict rests, and for a safe one also how
// much was covered. The screen is width characters wide, 0 for any.
func (r *VerdictRow) RestsOn(width int) string {
	what := r.Bug
	if r.Bug == "" {
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

// Answer is the verdict in a line, for people.
func (r *VerdictRow) Answer() string {
	switch r.Verdict {
	case explore.Unsafe:
		return fmt.Sprintf("UNSAFE: %s in %s", r.Violation.Property, spelling.Several(r.Depth, "step"))
	case explore.Safe:
		return fmt.Sprintf("SAFE for %s, %s (%s)", machineOf(r.Model.Roles), spelling.Several(len(r.Model.Code.Sites), "site"),
			spelling.Several(int(r.States), "state"))
	}
	if r.Verdict == explore.NotFound {
		return fmt.Sprintf("NOT FOUND: %s of %s in all have met nothing, which proves nothing",
			spelling.Several(int(r.Swarm), "search"), spelling.Several(int(r.States), "state"))
	}
	return fmt.Sprintf("INCOMPLETE: nothing breaks in the first %s; %s", spelling.Several(int(r.States), "state"), r.Cut)
}

// CutShort says how far an incomplete search has got, and its question.
func (r *VerdictRow) CutShort() string {
	if r.Verdict == explore.NotFound {
		return fmt.Sprintf("%s went as deep as %s and met nothing: that proves nothing: %s",
			spelling.Several(int(r.Swarm), "search"), spelling.Several(r.Depth, "step"), Command(r.Short()))
	}
	return fmt.Sprintf("nothing is known beyond %s and %s: %s: %s", spelling.Several(r.Depth-1, "step"),
		spelling.Several(int(r.States), "state"), r.Cut, Command(r.Short()))
}

// Answers is what several verdicts come to, in a line.
func Answers(rows []VerdictRow) string {
	return Tally(rows, func(r VerdictRow) explore.Verdict { return r.Verdict },
		explore.Unsafe, explore.Safe, explore.NotFound, explore.Incomplete)
}

// Tally says how many rows come to which verdict, in this order of the verdicts.
func Tally[R any, V ~string](rows []R, of func(R) V, order ...V) string {
	count := map[V]int{}
	for _, r := range rows {
		count[of(r)]++
	}
	var parts []string
	for _, v := range order {
		if n := count[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToUpper(string(v))))
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(" of %s", spelling.Several(len(rows), "question"))
}

// machineOf is a machine in words: how many CPUs, and which, unless all are busy.
func machineOf(roles []cpus.Role) string {
	text := cpus.FormatRoles(roles)
	if strings.Contains(text, "=") {
		return spelling.Several(len(roles), "CPU") + " (" + text + ")"
	}
	return spelling.Several(len(roles), "CPU")
}

// Search says how questions are searched: its limits and its reductions. Commands and experiments declare these choices
// by its fields.
type Search struct {
	Reduce      string
	Exact       bool
	Jobs        int
	LimitStates uint64
	LimitMemory uint64 // MiB
	LimitTime   time.Duration
}

// maxMemory is the highest limit on memory, in MiB.
const maxMemory = 1 << 40

// Fields are the choices, with their defaults.
func (s *Search) Fields() []*choice.Field {
	return []*choice.Field{
		choice.One(&s.Reduce, "reduce", "all", "`parts` that the search may leave out", choice.OneOf(explore.ReductionNames())),
		choice.Flag(&s.Exact, "exact", "keep whole states, not fingerprints of 64 bits: slower and larger, but never wrong"),
		choice.Count(&s.Jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on", 1, 1<<16),
		choice.One(&s.LimitStates, "limit-states", "",
			"stop at this `number` of states, at the end of a level; 0 for none",
			choice.UpTo(math.MaxUint64, "a number, or 0 for none")),
		choice.One(&s.LimitMemory, "limit-memory", "4096",
			"stop when states and queue take so many `MiB`; 0 for no limit",
			choice.UpTo(maxMemory, fmt.Sprintf("at most %d MiB, or 0 for no limit", maxMemory))),
		choice.Time(&s.LimitTime, "limit-time", 0, "stop after this `time`, such as 10m; 0 for none", 0),
	}
}

// Options are those of the checker.
func (s *Search) Options() (explore.Options, error) {
	reduce, err := explore.ParseReductions(s.Reduce)
	return explore.Options{
		Reduce: reduce, Exact: s.Exact, Workers: s.Jobs,
		LimitStates: s.LimitStates, LimitTime: s.LimitTime, LimitMemory: s.LimitMemory << 20,
	}, err
}

// Replay forces a trace on an engine; see explore.Replay and ReplayTimed.
func Replay(engine sim.EngineKind, m *explore.Model, t *explore.Trace) (*cpus.Violation, error) {
	if engine == sim.TimedEngine {
		return ReplayTimed(m, t)
	}
	return explore.Replay(m, t)
}

// ReplayTimed forces a trace on the timed engine, one step at a time as the trace says,
// and comes to the same violation; see explore.Replay. Errors also say what the timed
// engine cannot express.
func ReplayTimed(m *explore.Model, t *explore.Trace) (*cpus.Violation, error) {
	if n := len(m.Programs); n > 1 {
		return nil, fmt.Errorf("the timed engine has one patcher, the trace has %d", n)
	}
	machine, err := timed.NewLockstep(timed.Config{
		Code: m.Code, Roles: m.Roles, Lookup: m.Lookup, Refs: m.Refs,
		NopOps: m.NopOps, Initial: func(site int) isa.Text { return m.Initial[site] },
		Slots: m.Slots, Filling: m.Filling,
	})
	if err != nil {
		return nil, err
	}
	if err := m.Furnish(machine); err != nil {
		return nil, err
	}
	return explore.ReplayOn(m, t, machine)
}
