// SPDX-License-Identifier: Apache-2.0

// Package lessons is five lessons in live text patching. Each has a question, the commands
// that answer it, and counterexamples to step through. The pages ask the checker for the
// answers when they are made.
package lessons

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/prove"
	"github.com/textpoke/textpoke/check/stepper"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// lesson is a chapter that is not answered yet.
type lesson struct {
	Title string
	Text  []string
	Cases []question
}

// question is one of a check, a proof, a plan or a scenario of the museum.
type question struct {
	Check, Prove, Plan axis.Choices
	Bug                string
	Fixed              bool
}

//go:embed five.json
var five []byte

// Page answers the lessons' questions.
func Page(ctx context.Context) (stepper.Page, error) {
	p := stepper.Page{Title: "Five lessons in live text patching", Lead: "A kernel that is traced rewrites code " +
		"that every CPU keeps executing. Each lesson is a question, the commands that answer it, and the way in which " +
		"something breaks, to be stepped forwards and backwards."}
	var all []lesson
	if err := json.Unmarshal(five, &all); err != nil {
		return p, fmt.Errorf("five.json: %w", err)
	}
	for _, l := range all {
		c := stepper.Chapter{Title: l.Title, Paragraphs: l.Text}
		for _, q := range l.Cases {
			answer, err := q.answer(ctx)
			if err != nil {
				return p, fmt.Errorf("lesson %q: %w", l.Title, err)
			}
			c.Cases = append(c.Cases, answer)
		}
		p.Chapters = append(p.Chapters, c)
	}
	return p, nil
}

// Case is a verdict as a page shows it. Its plan can be edited.
func Case(r *check.VerdictRow) stepper.Case {
	c := stepper.Case{Command: check.Command(r.Short()), Answer: r.Answer(), Trace: r.Trace}
	if r.Bug == "" {
		p := r.Definition()
		c.Edit = &stepper.Edit{Plan: string(p.Text()), Choices: choicesOf(r.Flags())}
		if !p.StatesPath() {
			c.Edit.Plan += poke.DefaultPath()
		}
	}
	return c
}

// choicesOf is what flags choose beside the protocol and its defects.
func choicesOf(flags []string) map[string][]string {
	chosen := map[string][]string{}
	for i := 0; i < len(flags); i++ {
		name, value := strings.TrimPrefix(flags[i], "--"), "true"
		if i+1 < len(flags) && !strings.HasPrefix(flags[i+1], "--") {
			i++
			value = flags[i]
		}
		if name != "protocol" && name != "plan" && name != "mutate" {
			chosen[name] = append(chosen[name], value)
		}
	}
	return chosen
}

// editedStates bounds the search for a plan that was edited in a page, in states.
const editedStates = 300_000

// Edited is the verdict on a plan that was edited in a page.
func Edited(ctx context.Context, e stepper.Edit) (stepper.Case, error) {
	plan, err := poke.ParseProtocol("plan", []byte(e.Plan))
	if err != nil {
		return stepper.Case{}, err
	}
	q, err := one(e.Choices)
	if err != nil {
		return stepper.Case{}, err
	}
	q.Plan, q.Protocol = plan, plan.Name
	if err := q.Build(); err != nil {
		return stepper.Case{}, err
	}
	o := options()
	o.LimitStates = editedStates
	r, err := q.Ask(ctx, o)
	if err != nil {
		return stepper.Case{}, err
	}
	return stepper.Case{Command: check.Command(r.Short()), Answer: r.Answer(), Trace: r.Trace}, nil
}

// one is the one question of choices.
func one(choices axis.Choices) (*check.Question, error) {
	all, _, err := check.Questions(choices)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d questions, want one", len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func ask(ctx context.Context, q *check.Question) (stepper.Case, error) {
	r, err := q.Ask(ctx, options())
	if err != nil {
		return stepper.Case{}, err
	}
	return Case(&r), nil
}

func options() explore.Options {
	all, _ := explore.ParseReductions("all") // which is one of them
	return explore.Options{Reduce: all, Workers: 1}
}

// answer asks.
func (q *question) answer(ctx context.Context) (stepper.Case, error) {
	switch {
	case q.Bug != "":
		all, err := check.BugQuestions([]string{q.Bug}, q.Fixed)
		if err != nil {
			return stepper.Case{}, err
		}
		return ask(ctx, all[0])
	case q.Prove != nil:
		return proved(ctx, q.Prove)
	case q.Plan != nil:
		return planned(ctx, q.Plan)
	}
	asked, err := one(q.Check)
	if err != nil {
		return stepper.Case{}, err
	}
	return ask(ctx, asked)
}

func proved(ctx context.Context, choices axis.Choices) (stepper.Case, error) {
	q, err := one(choices)
	if err != nil {
		return stepper.Case{}, err
	}
	r, err := prove.Ask(ctx, q, nil, options())
	if err != nil {
		return stepper.Case{}, err
	}
	words := append(append([]string{"prove"}, q.Short()...), "--solver", "none")
	c := stepper.Case{Answer: prove.Answers([]*prove.Row{r})}
	if r.Found != nil {
		c.Trace = r.Found.Trace
	}
	if r.Verdict == prove.Proved {
		o, err := r.Explain(ctx, nil)
		if err != nil {
			return stepper.Case{}, err
		}
		words, c.Outline = append(words, "--explain"), o.String()
	}
	c.Command = sim.Command(words...)
	return c, nil
}

// planned counts the interrupts of each combination.
func planned(ctx context.Context, choices axis.Choices) (stepper.Case, error) {
	words := []string{"plan"}
	for _, flag := range []string{"arch", "records", "order", "buffer"} {
		words = append(words, "--"+flag, strings.Join(choices[flag], ","))
	}
	c := stepper.Case{Command: sim.Command(words...)}
	choices["seed"] = []string{"1"}
	grid, err := sim.NewGrid(sim.UsePlan, choices, records.Options{})
	if err != nil {
		return c, err
	}
	configs, _, err := grid.Combinations(ctx)
	if err != nil {
		return c, err
	}
	var parts []string
	for i := range configs {
		j, err := sim.NewJob(configs[i])
		if err != nil {
			return c, err
		}
		row, err := j.Count(ctx)
		if err != nil {
			return c, err
		}
		parts = append(parts, fmt.Sprintf("order %s: %d interrupts of each CPU", configs[i].Order, row.IPIsPerCPU))
	}
	c.Answer = strings.Join(parts, "; ")
	return c, nil
}
