// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
)

// Verdict is what is known of a protocol.
type Verdict string

// The verdicts.
const (
	Proved   Verdict = "proved"   // no state of any machine breaks anything
	Refuted  Verdict = "refuted"  // some machine does, and there is the way
	Unproved Verdict = "unproved" // neither can be told
	// Incomplete: a limit was hit, and nothing is known about what lies beyond.
	Incomplete Verdict = "incomplete"
)

// Row is the answer to one question.
type Row struct {
	*check.Question
	*Proof
	Verdict     Verdict
	Condition   string // what is not proved, and of what kind the failure is
	Obligations int    // that a solver was asked about, or that were written
	Solver      string
	Cutoff      string // what Second has found; "" where it was not asked
	// Found is the explorer's answer where the views alone do not tell; nil where it was
	// not asked or found nothing.
	Found *check.VerdictRow
}

// Ask proves, or looks for the counterexample. The solver may be nil.
func Ask(ctx context.Context, q *check.Question, s *Solver, o explore.Options) (*Row, error) {
	p, err := Close(ctx, &q.Setup)
	if err != nil {
		return nil, err
	}
	r := &Row{Question: q, Proof: p, Verdict: Unproved, Solver: "none", Condition: p.Why()}
	if r.Condition == "" {
		r.Verdict = Proved
		if s == nil {
			return r, nil
		}
		return r, r.certify(ctx, s)
	}
	var cut string
	if r.Found, cut, err = counterexample(ctx, q, p, o); err != nil {
		return nil, err
	}
	switch {
	case r.Found != nil:
		r.Verdict = Refuted
	case cut != "":
		r.Verdict = Incomplete
		r.Condition += " (the search for a machine that does so was cut short: " + cut + ")"
	case p.Cut != "":
		r.Verdict = Incomplete
	case len(p.Broken) > 0:
		_, sizes := searched(q)
		r.Condition += " (possibly a false alarm: no machine of " + sizes + " does so)"
	}
	return r, nil
}

// certify asks the solver. One that contradicts is not believed, nor are the views; one
// that gives up leaves it open.
func (r *Row) certify(ctx context.Context, s *Solver) error {
	n, open, err := r.Proof.Certify(ctx, s)
	r.Solver, r.Obligations = s.Name, n
	if err != nil || len(open) == 0 {
		return err
	}
	r.Verdict = Incomplete
	var said []string
	for _, o := range open {
		if said = append(said, o.String()); o.Answer == "sat" {
			r.Verdict = Unproved
		}
	}
	r.Condition = strings.Join(said, "; ")
	return nil
}

// extent is how large a machine is.
type extent struct{ sites, cpus int }

// searched are the machines in which a counterexample is looked for, and their sizes in words. Each patcher wants a site,
// and a CPU that is not isolated.
func searched(q *check.Question) ([]extent, string) {
	if q.Patchers > 1 {
		return []extent{{2, 3}, {4, 3}}, "2 or 4 sites, 2 patchers and 3 CPUs"
	}
	return []extent{{1, 2}, {1, 3}, {2, 2}, {2, 3}}, "1 or 2 sites and 2 or 3 CPUs"
}

// counterexample looks for a machine that breaks something, the smallest first; nil where
// there is none: with sites where the proof fails, and with a vector of one slot where it
// overflows. cut says which limit ended the first search that did not get through.
func counterexample(ctx context.Context, q *check.Question, p *Proof, o explore.Options) (found *check.VerdictRow, cut string,
	err error) {
	overflows := slices.ContainsFunc(p.Broken, func(b Break) bool { return b.Property == cpus.Overflow })
	sizes, _ := searched(q)
	for _, size := range sizes {
		small := *q
		small.Patchers = min(q.Patchers, 2)
		small.Sites, small.Offset = size.sites, p.Offset
		small.Roles = slices.Repeat([]cpus.Role{cpus.Busy}, size.cpus)
		if overflows {
			small.Buffer = sched.Buffer{Slots: 1}
		}
		if q.Setup.Mutation.Filling == poke.AsQueued {
			small.Order = sched.Descending
		}
		switch path := &q.Model.Code.Path; {
		case path.ComesUp && size.cpus == 3:
			small.Roles[2] = cpus.Offline
		case path.Tells:
			small.Roles[size.cpus-1] = cpus.Isolated
		}
		if err := small.Build(); err != nil {
			return nil, "", err
		}
		row, err := small.Ask(ctx, o)
		switch {
		case err != nil:
			return nil, "", err
		case row.Verdict == explore.Unsafe:
			return &row, "", nil
		case row.Verdict == explore.Incomplete && cut == "":
			cut = fmt.Sprintf("%d sites, %d CPUs: %s", size.sites, size.cpus, row.Cut)
		}
	}
	return nil, cut, nil
}

// ErrDisagree says that the views and the explorer do not say the same: one of them is wrong.
var ErrDisagree = errors.New("the views say proved, and a machine breaks all the same")

// Second asks the explorer too, whatever the views say: it goes through the machines in which
// counterexamples are looked for. Cutoff then says what it finds there. A machine that breaks
// where the views prove is ErrDisagree.
func (r *Row) Second(ctx context.Context, o explore.Options) error {
	found, cut, err := counterexample(ctx, r.Question, r.Proof, o)
	switch {
	case err != nil:
		return err
	case found == nil && cut == "":
		sizes, _ := searched(r.Question)
		r.Cutoff = fmt.Sprintf("safe up to %d sites, 3 CPUs", sizes[len(sizes)-1].sites)
		return nil
	case found == nil:
		r.Cutoff = "incomplete with " + cut
		return nil
	}
	r.Cutoff = fmt.Sprintf("unsafe with sites %d, cpus %s", found.Sites, cpus.FormatRoles(found.Setup.Roles))
	if r.Verdict == Proved {
		return fmt.Errorf("%s %s: %w: %s", r.Arch.Traits().Name, r.Protocol, ErrDisagree, found.Violation)
	}
	return nil
}

// declared are the columns of the package's table.
//
//go:embed columns.txt
var declared string

// Columns are the columns of a table of proofs.
var Columns = results.Declare(declared, "proof", map[string]func(*Row) any{
	"cpus":     func(r *Row) any { return r.number(func(m *explore.Model) int { return len(m.Roles) }) },
	"sites":    func(r *Row) any { return r.number(func(m *explore.Model) int { return len(m.Code.Sites) }) },
	"patchers": func(r *Row) any { return results.If(r.Question.Patchers > 1, "any") },
	"updates":  func(r *Row) any { return results.If(r.Verdict == Proved || r.Verdict == Refuted, "any") },
	"ends":     func(r *Row) any { return results.If(r.Verdict == Proved, cmp.Or(r.Stuck, "yes")) },
})

// number is any where that is proved, and that of the counterexample where there is one.
func (r *Row) number(of func(*explore.Model) int) any {
	switch {
	case r.Verdict == Proved:
		return "any"
	case r.Found != nil:
		return fmt.Sprint(of(r.Found.Model))
	}
	return results.Empty
}

// Answers is what proofs come to in a line, for people.
func Answers(rows []*Row) string {
	if len(rows) == 1 {
		return rows[0].answer()
	}
	return check.Tally(rows, func(r *Row) Verdict { return r.Verdict }, Refuted, Unproved, Incomplete, Proved)
}

func (r *Row) answer() string {
	switch {
	case r.Verdict == Proved:
		of := "CPUs, sites"
		if r.Question.Patchers > 1 {
			of += ", patchers"
		}
		return fmt.Sprintf("PROVED for any number of %s and updates (%d views)", of, r.Views())
	case r.Found != nil:
		return fmt.Sprintf("REFUTED: %s in %d steps", r.Found.Violation.Property, r.Found.Depth)
	}
	return strings.ToUpper(string(r.Verdict)) + ": " + r.Condition
}

// Assumes is what a proof takes for granted, in one line.
func (r *Row) Assumes() string {
	online := "every CPU online throughout"
	if r.Model.Code.Path.ComesUp {
		online = "CPUs come online at any time, and stay"
	}
	if r.Model.Code.Path.GoesDown {
		online = "CPUs go offline and come online at any time"
	}
	patchers, tasks := "one patcher", "not preempted"
	if r.Question.Patchers > 1 {
		patchers = "any number of patchers, each with sites and an ops of its own"
	}
	if r.Question.Preempt {
		tasks = "preempted"
	}
	line := fmt.Sprintf("fetch %s; %s; %s; tasks are %s inside of a call; ", r.Fetch, patchers, online, tasks)
	if at := r.Model.Code.Sites[0]; r.Question.Offset != 0 || r.Model.FinerElsewhere() {
		line += fmt.Sprintf("sites at %d mod 8; ", at%8)
	}
	if on := r.Model.RestsOn(); on != "" {
		line += on + "; "
	}
	line += "not modelled: cache maintenance, alias mappings, "
	if !r.Model.Code.Path.NMIs {
		line += "non-maskable interrupts, "
	}
	line += "nested traps"
	if r.Verdict == Proved && r.Stuck == "" {
		return line
	}
	return line + "; not proved: that updates end"
}
