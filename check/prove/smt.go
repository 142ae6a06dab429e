// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Obligation is one file for a solver: unsat is what it must answer.
type Obligation struct {
	Name  string // of the file, without its ending
	About string // in a line
	Step  string // the step that it is about, "" for none
	Fires bool   // some view makes the step
	head  string
	guard string
	goal  string
}

// Text is the obligation as a script for a solver. Without its goal it must be
// satisfiable, or its step can never be made.
func (o *Obligation) Text(goal bool) string { return "; " + o.About + "\n" + o.script(goal) }

// script is the text without what it is about.
func (o *Obligation) script(goal bool) string {
	s := o.head + o.guard
	if goal {
		s += o.goal
	}
	return s + "(check-sat)\n"
}

// form is how "for all CPUs and sites" is written: with quantifiers, or by naming every CPU
// and site that an obligation can speak of. A CPU has a site, but a site leads to no CPU, so
// these are finitely many.
type form struct {
	quantified bool
	cpus       []string
	sites      []string
}

var (
	quantified = form{quantified: true}
	ground     = form{cpus: []string{"c0", "c1", "c9"}, sites: []string{"s0", "s1", "(at c9)"}}
)

func (f form) everyCPU(say func(c string) string) string  { return f.every("c", "Cpu", f.cpus, say) }
func (f form) everySite(say func(s string) string) string { return f.every("s", "Site", f.sites, say) }

func (f form) every(name, sort string, named []string, say func(string) string) string {
	if f.quantified {
		return "(forall ((" + name + " " + sort + ")) " + say(name) + ")"
	}
	return conj(spelling.Each(named, say))
}

func (f form) everyPair(say func(c, s string) string) string {
	if f.quantified {
		return "(forall ((c Cpu) (s Site)) " + say("c", "s") + ")"
	}
	return conj([]string{say("c0", "s0"), say("c0", "s1"), say("c1", "s0"), say("c1", "s1"), say("c9", "(at c9)")})
}

func conj(list []string) string { return nary("and", "true", list) }
func disj(list []string) string { return nary("or", "false", list) }

func nary(op, none string, list []string) string {
	switch len(list) {
	case 0:
		return none
	case 1:
		return list[0]
	}
	return "(" + op + " " + strings.Join(list, " ") + ")"
}

func ite(when, then, otherwise string) string {
	if then == otherwise || when == "true" {
		return then
	}
	return "(ite " + when + " " + then + " " + otherwise + ")"
}

// isBool tells whether an attribute is true or false.
func isBool(a attr) bool { return attrs[a].size == 2 }

// sort is an attribute's sort.
func sortOf(a attr) string {
	if isBool(a) {
		return "Bool"
	}
	n := a.String()
	return strings.ToUpper(n[:1]) + n[1:]
}

// val is a value of an attribute.
func val(a attr, x number) string {
	if isBool(a) {
		return []string{"false", "true"}[x]
	}
	return fmt.Sprintf("%s%d", a, x)
}

// is says that a term is one of some values.
func (w *writer) is(a attr, term string, in values) string {
	list := in.list(w.size[a])
	if len(list) == w.size[a] {
		return "true"
	}
	if isBool(a) {
		if in.has(1) {
			return term
		}
		return "(not " + term + ")"
	}
	return disj(spelling.Each(list, func(x number) string { return fmt.Sprintf("(= %s %s)", term, val(a, x)) }))
}

// term is an attribute in a state, of a CPU and a site; after is "" or "-next".
func term(a attr, after, c, s string) string {
	switch attrs[a].of {
	case ofSite:
		return fmt.Sprintf("(%s%s %s)", a, after, s)
	case ofCPU:
		return fmt.Sprintf("(%s%s %s)", a, after, c)
	case ofPair:
		return fmt.Sprintf("(%s%s %s %s)", a, after, c, s)
	}
	return a.String() + after
}

// of declares what an attribute takes.
func params(a attr) string {
	switch attrs[a].of {
	case ofSite:
		return "Site"
	case ofCPU:
		return "Cpu"
	case ofPair:
		return "Cpu Site"
	}
	return ""
}

// state are the attributes that a state has.
func state() (list []attr) {
	for a := range numAttrs {
		if a != chosen {
			list = append(list, a)
		}
	}
	return list
}

// inView says that the view of a CPU and a site is one of those that there can be: V
// where the CPU is at the site, W where it is not.
func inView(after, c, s string) string {
	args := spelling.Each(state(), func(a attr) string { return term(a, after, c, s) })
	all := strings.Join(args, " ")
	return fmt.Sprintf("(ite (= (at%s %s) %s) (V %s) (W %s))", after, c, s, all, all)
}

// Solver decides obligations: z3 or cvc5. Debian has both.
type Solver struct {
	Name string
	path string
	args []string

	mu      sync.Mutex
	decided map[string]string // by script: obligations of several protocols are often the same
}

// Solvers are the names of those that are known; "none" asks none.
var Solvers = []string{"z3", "cvc5", "none"}

// arguments make a solver read a script from its input, and give up when it has done some
// ten times as much as the most that an obligation takes, however busy the machine is.
// z3 takes a quarter of the time where it goes about it without its preprocessing, looks at
// everything and tries false first, cvc5 a twentieth where its solver decides by itself what
// to look at next: the obligations are cases upon cases, and all of them matter.
var arguments = map[string][]string{
	"z3":   {"-in", "rlimit=200000000", "tactic.default_tactic=smt", "smt.relevancy=0", "smt.phase_selection=0"},
	"cvc5": {"--lang=smt2", "--rlimit=200000000", "--decision=internal"},
}

// NewSolver finds an installed solver by name; nil for "none".
func NewSolver(name string) (*Solver, error) {
	if name == "none" {
		return nil, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("solver %s is not installed (Debian has it as package %s): %w", name, name, err)
	}
	return &Solver{Name: name, path: path, args: arguments[name], decided: map[string]string{}}, nil
}

// decide is a solver's answer to a script: sat, unsat, unknown or what went wrong.
func (s *Solver) decide(ctx context.Context, script string) (string, error) {
	s.mu.Lock()
	answer, ok := s.decided[script]
	s.mu.Unlock()
	if ok {
		return answer, nil
	}
	out, err := s.run(ctx, script)
	if err != nil {
		return "", err
	}
	answer, _, _ = strings.Cut(out, "\n")
	s.mu.Lock()
	s.decided[script] = answer
	s.mu.Unlock()
	return answer, nil
}

// run gives a script to the solver and returns its output.
func (s *Solver) run(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, s.path, s.args...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return "", fmt.Errorf("solver %s: %w", s.Name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// core is which of a script's named assertions contradict each other; nil where the solver does
// not find that they do.
func (s *Solver) core(ctx context.Context, script string) ([]string, error) {
	out, err := s.run(ctx, script)
	names, found := strings.CutPrefix(out, "unsat")
	if err != nil || !found {
		return nil, err
	}
	return append([]string{}, strings.Fields(strings.Trim(strings.TrimSpace(names), "()"))...), nil
}

// Open is an obligation that a solver does not refute.
type Open struct {
	Obligation string
	Solver     string
	Answer     string // "sat", or why there is none
}

func (o Open) String() string { return fmt.Sprintf("%s: %s says %q", o.Obligation, o.Solver, o.Answer) }

// refute asks the solver about obligations, and returns those that it does not refute.
func (s *Solver) refute(ctx context.Context, list []Obligation) (open []Open, err error) {
	answers, err := s.answers(ctx, list, true)
	for i, a := range answers {
		if a != "unsat" {
			open = append(open, Open{list[i].Name, s.Name, a})
		}
	}
	return open, err
}

// answers asks the solver about obligations, with or without their goals, several at once.
func (s *Solver) answers(ctx context.Context, list []Obligation, goal bool) ([]string, error) {
	answers := make([]string, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range list {
		group.Go(func() (err error) {
			answers[i], err = s.decide(ctx, list[i].script(goal))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return answers, nil
}
