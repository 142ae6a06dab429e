// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/promela"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// exports are the languages that a model can be written in.
var exports = []string{"promela"}

// instead finds what check is to do instead of exploring: nil for nothing. At most
// one of these can be asked for.
func (k *checkFlags) instead(request choice.Request) (do func(context.Context, *common) error, err error) {
	var asked []string
	for _, other := range []struct {
		flag string
		do   func(context.Context, *common) error
	}{
		{"list", k.printList}, {"litmus", k.runLitmus}, {"export", k.writeModel},
		{"replay", k.runReplay}, {"record", k.runRecord}, {"conform", k.runConform},
	} {
		if request.Has(other.flag) {
			asked = append(asked, "--"+other.flag)
			do = other.do
		}
	}
	if len(asked) > 1 {
		return nil, fmt.Errorf("%s: want one of them", strings.Join(asked, " and "))
	}
	return do, nil
}

// printList lists what can be checked.
func (k *checkFlags) printList(ctx context.Context, c *common) error {
	t, err := check.List()
	if err != nil {
		return err
	}
	if !c.people() || c.columns != nil {
		return c.written(ctx, &output{table: t})
	}
	var kinds []string
	groups := map[string][]described{}
	for _, row := range t.Rows {
		kind := row[0].String()
		if groups[kind] == nil {
			kinds = append(kinds, kind)
		}
		groups[kind] = append(groups[kind], described{row[1].String(), row[2].String()})
	}
	counts := spelling.Each(kinds, func(kind string) string { return fmt.Sprintf("%d %s", len(groups[kind]), kind) })
	width := cmp.Or(c.width(), results.MaxWidth)
	head := fmt.Sprintf("%d in all: %s", len(t.Rows), strings.Join(counts, ", "))
	fmt.Fprintln(c.streams.out, filled(head, width))
	for _, kind := range kinds {
		list(c.streams.out, fmt.Sprintf("%s (%d)", kind, len(groups[kind])), width, groups[kind])
	}
	return c.written(ctx, &output{table: t, hidden: true})
}

// runLitmus asks whether outcomes are allowed.
func (k *checkFlags) runLitmus(ctx context.Context, c *common) error {
	rows, differ, err := check.Litmus(ctx, k.litmus)
	if err != nil {
		return err
	}
	c.note(k.litmus...)
	if err := printAnswer(ctx, c, check.LitmusAnswer(rows, differ), check.LitmusColumns, "litmus", rows); err != nil {
		return err
	}
	for _, r := range rows {
		if len(r.Witness) > 0 && c.people() && len(k.litmus) == 1 && k.litmus[0] != "all" {
			fmt.Fprintf(c.streams.out, "\n%s on %s: %s\n  %s\n", r.Test, r.Class, r.Outcome, strings.Join(r.Witness, "\n  "))
		}
	}
	if len(differ) > 0 {
		return noError{errors.New(strings.Join(differ, "; "))}
	}
	return nil
}

// one is the one question that the flags ask.
func (k *checkFlags) one(c *common, asked choice.Request, what string) (*check.Question, error) {
	questions, err := k.questions(c, asked.Config["bug"], chosen(asked, check.Axes))
	if err == nil && len(questions) != 1 {
		err = fmt.Errorf("--%s is for one question, and these are %d; say --arch", what, len(questions))
	}
	if err != nil {
		return nil, err
	}
	return questions[0], nil
}

// writeModel writes the model for another checker.
func (k *checkFlags) writeModel(ctx context.Context, c *common) error {
	q, err := k.one(c, c.asked, "export")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(c.streams.out)
	if err := promela.Write(w, q.Model); err != nil {
		return err
	}
	return w.Flush()
}

// traced reads a trace and the question that it is about.
func (k *checkFlags) traced(c *common, path string) (*check.Question, *explore.Trace, error) {
	about := chosen(c.asked, check.Axes)
	for _, name := range append(slices.Sorted(maps.Keys(about)), "bug", "fixed") {
		if c.asked.Has(name) {
			return nil, nil, fmt.Errorf("--%s: the trace says itself what it is about", name)
		}
	}
	t, err := explore.LoadTrace(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (want a file that --trace or --record wrote)", err)
	}
	c.note(path)
	asked := choice.ParseArgs(append([]string{"textpoke"}, t.Model...))
	if !asked.Has("workload") && !asked.Has("bug") { // saved when there was no other one
		asked.Config["workload"] = []string{explore.Once.String()}
		t.Model = append(t.Model, "--workload", explore.Once.String())
	}
	var of checkFlags
	rest, err := asked.Config.Fill(of.fields())
	for name := range rest {
		if err == nil && name != "bug" && check.Axes.Named(name) == nil {
			err = fmt.Errorf("no flag --%s", name)
		}
	}
	var q *check.Question
	if err == nil {
		q, err = of.one(c, asked, "replay")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("trace %s: model %q: %w", path, t.Model, err)
	}
	return q, t, nil
}

// runReplay forces a counterexample on another engine.
func (k *checkFlags) runReplay(ctx context.Context, c *common) error {
	engine, err := sim.ParseEngine(k.engine)
	if err != nil {
		return err
	}
	q, t, err := k.traced(c, k.replay)
	if err != nil {
		return err
	}
	if t.Violation.Property == "" {
		return fmt.Errorf("trace %s: it ends in no violation: see --conform", k.replay)
	}
	v, err := check.Replay(engine, q.Model, t)
	if _, ok := errors.AsType[*explore.DivergedError](err); ok { // that is no answer about the protocol
		return fmt.Errorf("trace %s: the %s engine does something else: %w", k.replay, engine, err)
	}
	if err != nil {
		return fmt.Errorf("trace %s: %w", k.replay, err)
	}
	row := check.VerdictRow{Question: q, Result: &explore.Result{Verdict: explore.Unsafe, Violation: v, Trace: t,
		Depth: len(t.Steps)}}
	if k.html != "" {
		if err := c.toPage(k.html, pageOf([]check.VerdictRow{row}).Write); err != nil || k.html == "-" {
			return cmp.Or(err, errNo)
		}
	}
	if c.people() {
		fmt.Fprintf(c.streams.out, "%s\n%s\nOn the %s engine these %d steps end in the same violation:\n%s\n",
			check.Command(t.Model), t.ExplainIn(c.width()), engine, len(t.Steps), v)
		return errNo
	}
	return cmp.Or(printRows(ctx, c, check.Columns, "check", []*check.VerdictRow{&row}), errNo)
}

// recordedSteps is how many steps of a live run are recorded at most.
const recordedSteps = 200_000

// runRecord runs the question's program on the live engine, and saves what
// happened.
func (k *checkFlags) runRecord(ctx context.Context, c *common) error {
	q, err := k.one(c, c.asked, "record")
	if err != nil {
		return err
	}
	t, err := explore.Record(ctx, q.Model, c.seeds[0], recordedSteps)
	if err != nil {
		return err
	}
	t.Model = q.Flags()
	if err := t.Save(k.record); err != nil {
		return err
	}
	fmt.Fprintf(c.streams.out, "%d steps of %s\n", len(t.Steps), check.Command(t.Model))
	if t.Violation.Property != "" {
		fmt.Fprintln(c.streams.out, t.Violation)
		return errNo
	}
	return nil
}

// runConform takes a recorded run through the checker's semantics.
func (k *checkFlags) runConform(ctx context.Context, c *common) error {
	q, t, err := k.traced(c, k.conform)
	if err != nil {
		return err
	}
	n, err := explore.Conform(q.Model, t)
	if err != nil {
		return noError{fmt.Errorf("trace %s: after %d steps that the checker has too: %w", k.conform, n, err)}
	}
	fmt.Fprintf(c.streams.out, "%d steps: the checker has every one of them, with the same outcome\n", n)
	return nil
}
