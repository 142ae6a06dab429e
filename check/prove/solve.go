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
)

// Solver decides obligations: z3 or cvc5, both of which Debian has.
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

// run is all that a solver says to a script.
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
