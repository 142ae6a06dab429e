// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/prove"
	"github.com/textpoke/textpoke/internal/files"
)

// proveAxes are those of check that a proof is not for any value of by itself.
var proveAxes = check.Axes.Only("arch", "layout", "plan", "protocol", "place", "refs", "lookup", "mutate",
	"fetch", "preempt", "patchers")

// proveFlags is the flags of prove.
type proveFlags struct {
	smt, coq, solver string
	limitTime        time.Duration
	cutoff           bool
	explain          bool
}

func proveCommand(c *common) *cobra.Command {
	var p proveFlags
	cmd := newCommand("prove", func(cmd *cobra.Command, _ []string) error { return p.run(cmd, c) })
	addAxes(cmd, proveAxes)
	c.prints(cmd, "", prove.Columns.Table("prove"))
	return declare(cmd, "prove", &p, strings.Join(prove.Solvers, "|"))
}

func (p *proveFlags) run(cmd *cobra.Command, c *common) error {
	solver, err := prove.NewSolver(p.solver)
	if err != nil {
		return err
	}
	choices := chosen(c.asked, proveAxes)
	if choices["patchers"] != nil { // a site for each, and a CPU
		choices["sites"] = []string{strconv.Itoa(explore.MaxPatchers)}
		choices["cpus"] = []string{strconv.Itoa(explore.MaxPatchers + 1)}
	}
	c.note(choices["plan"]...)
	questions, err := c.ofChoices(choices)
	if err != nil {
		return err
	}
	var rows []*prove.Row
	out := &output{table: prove.Columns.Table("prove"), above: func() string { return c.painted(proofs(rows, len(questions))) }}
	err = c.each(cmd.Context(), out, len(questions), func(i int, o *output) error {
		row, err := p.one(cmd.Context(), questions[i], solver, len(questions) > 1)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		return o.add(prove.Columns.Cells(row)...)
	})
	c.printBroken(rows)
	if err != nil {
		return err
	}
	if p.explain {
		if err := c.explain(cmd.Context(), rows, solver); err != nil {
			return err
		}
	}
	return answer(rows)
}

// proofs is the answer for people, of so many questions.
func proofs(rows []*prove.Row, questions int) string {
	switch {
	case len(rows) == 0:
		return "INCOMPLETE"
	case len(rows) < questions:
		return fmt.Sprintf("INCOMPLETE; %s, and %d were asked", prove.Answers(rows), questions)
	}
	return prove.Answers(rows)
}

// answer is the exit code's: no, unless all is proved; cut short where limits alone keep
// it from being.
func answer(rows []*prove.Row) (err error) {
	for _, r := range rows {
		switch r.Verdict {
		case prove.Proved:
		case prove.Incomplete:
			err = errCut
		default:
			return errNo
		}
	}
	return err
}

// one answers one question, and writes its obligations.
func (p *proveFlags) one(ctx context.Context, q *check.Question, s *prove.Solver, several bool) (*prove.Row, error) {
	row, err := prove.Ask(ctx, q, s, p.options())
	if err == nil && p.cutoff {
		err = row.Second(ctx, p.options())
	}
	if err != nil || row.Views() == 0 {
		return row, err
	}
	name := ""
	if several {
		name = fmt.Sprintf("%s-%s-%s-%s", q.Arch.Traits().Name, q.Protocol, q.Fetch, q.Refs)
		if q.Mutation != "" {
			name += "-" + q.Mutation
		}
	}
	if p.smt != "" {
		if err := writeTexts(filepath.Join(p.smt, name), obligations(row)); err != nil {
			return nil, err
		}
	}
	if p.coq != "" {
		if err := writeTexts(filepath.Join(p.coq, name), row.Coq()); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// obligations are a proof's files for solvers, by their names.
func obligations(row *prove.Row) map[string]string {
	texts := map[string]string{}
	for dir, quantified := range map[string]bool{"": false, "quantified": true} {
		list := row.Proof.Obligations(quantified)
		row.Obligations = len(list)
		for _, o := range list {
			texts[filepath.Join(dir, o.Name+".smt2")] = o.Text(true)
			texts[filepath.Join(dir, o.Name+".vacuous.smt2")] = o.Text(false)
		}
	}
	return texts
}

// writeTexts writes files into a directory, and makes it.
func writeTexts(dir string, texts map[string]string) error {
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := files.Write(path, 0o666, files.From(strings.NewReader(text))); err != nil {
			return err
		}
	}
	return nil
}

// printBroken prints, for people, how what is not proved breaks, and once what proofs take for granted.
func (c *common) printBroken(rows []*prove.Row) {
	if !c.people() {
		return
	}
	assumed := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.Found != nil:
			fmt.Fprintf(c.streams.out, "\n%s\n%s", check.Command(r.Found.Short()), r.Found.Trace.ExplainIn(c.width()))
		case r.Verdict == prove.Proved:
			if what := r.Assumes(); !assumed[what] {
				assumed[what] = true
				fmt.Fprintf(c.streams.out, "\n%s", check.Wrapped(c.width(), "assumes: "+what))
			}
		default:
			for _, b := range r.Broken {
				fmt.Fprintf(c.streams.out, "\nA way through views that no machine may have:\n%s", b.Story)
			}
		}
	}
}

// explain prints what is proved as an outline; only to people.
func (c *common) explain(ctx context.Context, rows []*prove.Row, s *prove.Solver) error {
	for _, r := range rows {
		if r.Verdict != prove.Proved || !c.people() {
			continue
		}
		o, err := r.Explain(ctx, s)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.streams.out, "\n%s, %s\n%s", r.Arch.Traits().Name, r.Protocol, o)
	}
	return nil
}

// options are those of the search for a counterexample.
func (p *proveFlags) options() explore.Options {
	all, _ := explore.ParseReductions("all") // which is one of them
	return explore.Options{Reduce: all, Workers: runtime.GOMAXPROCS(0), LimitTime: p.limitTime}
}
