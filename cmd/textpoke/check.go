// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/results"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// checkFlags is the flags of check.
type checkFlags struct {
	searchFlags

	Bug    []string // these are asked about by the names of their flags
	List   bool
	Export string

	litmus                                     []string
	fixed                                      bool
	trace, replay, record, conform, checkpoint string
	html                                       string
	engine                                     string
	every                                      time.Duration
	resume, liveness                           bool
}

func checkCommand(c *common) *cobra.Command {
	k := &checkFlags{}
	cmd := newCommand("check", func(cmd *cobra.Command, _ []string) error { return k.run(cmd.Context(), c, c.asked) })
	c.prints(cmd, "", check.Columns.Table("check"))
	c.prints(cmd, "with --list", check.ListColumns.Table("list"))
	c.prints(cmd, "with --litmus", check.LitmusColumns.Table("litmus"))
	k.register(cmd, c)
	return cmd
}

// fields are the choices that are no axes.
func (k *checkFlags) fields() []*choice.Field {
	engines := strings.Join(sim.ReplayNames(), "|")
	return append(k.searchFlags.fields(),
		fields("check", k, strings.Join(exports, "|"), sim.LiveEngine.String(), engines)...)
}

func (k *checkFlags) register(cmd *cobra.Command, c *common) {
	addAxes(cmd, check.Axes)
	add(cmd, shardField(c))
	addQueue(cmd, c, "let workers do it that take points from this queue (see worker)")
	add(cmd, k.fields()...)
	declare(cmd, "check repeated", k)
	offer(cmd, "bug", check.BugNames)
	offer(cmd, "litmus", func() []string { return append([]string{"all"}, litmus.ShippedNames()...) })
}

func (k *checkFlags) run(ctx context.Context, c *common, asked choice.Request) error {
	instead, err := k.instead(asked)
	switch {
	case err != nil:
		return err
	case instead != nil && !c.queued():
		return instead(ctx, c)
	}
	s, err := k.search(c, asked)
	if err != nil {
		return err
	}
	err = s.answers(ctx, &output{table: check.Columns.Table("check"), hidden: k.html == "-"})
	if k.html != "" && len(s.rows) > 0 && (err == nil || err == errNo) {
		err = cmp.Or(c.toPage(k.html, pageOf(s.rows).Write), err)
	}
	if k.html != "-" && c.people() {
		c.printReasons(s.rows)
	}
	if s.unsaved != nil && err == errNo {
		err = s.unsaved
	}
	return err
}

// search is what a request asks for.
func (k *checkFlags) search(c *common, asked choice.Request) (*search, error) {
	o, err := k.Options()
	if err != nil {
		return nil, err
	}
	o.Checkpoint, o.Every, o.Resume, o.Liveness = k.checkpoint, k.every, k.resume, k.liveness
	questions, err := k.questions(c, asked.Config["bug"], chosen(asked, check.Axes))
	if err != nil {
		return nil, err
	}
	if len(questions) > 1 && (k.trace != "" || k.checkpoint != "") {
		return nil, fmt.Errorf("--trace and --checkpoint are for one question, and these are %d", len(questions))
	}
	return &search{common: c, searchFlags: &k.searchFlags, questions: divided(c, questions), options: o, trace: k.trace}, nil
}

// questions are those about bugs of the museum, or about all combinations of the choices.
func (k *checkFlags) questions(c *common, bugs []string, choices axis.Choices) ([]*check.Question, error) {
	if bugs != nil {
		for _, name := range slices.Sorted(maps.Keys(choices)) {
			return nil, fmt.Errorf("--%s does not go with --bug: a scenario says itself what it is about", name)
		}
		return check.BugQuestions(bugs, k.fixed)
	}
	c.note(choices["plan"]...)
	return c.ofChoices(choices)
}

// ofChoices makes the questions of all combinations, and says which were left out.
func (c *common) ofChoices(choices axis.Choices) ([]*check.Question, error) {
	questions, notes, err := check.Questions(choices)
	for _, n := range notes {
		c.logger().Warn(n)
	}
	return questions, err
}

// answerLine is the answer, in a line.
func (c *common) answerLine(rows []check.VerdictRow) string {
	if len(rows) != 1 {
		return check.Answers(rows)
	}
	line := c.painted(rows[0].Answer())
	if q := rows[0].Question; rows[0].Verdict == explore.Safe && !rows[0].Options.Liveness && provable(q) {
		line += "; for any number: " + sim.Command(append([]string{"prove"}, proveAxes.Short(q)...)...)
	}
	if width := c.width(); width > 0 && results.Displayed(line) > width {
		line = strings.Replace(line, "; for any", "\nfor any", 1)
	}
	return c.asTyped(line)
}

// provable tells whether prove can be asked the same of any number of CPUs and sites.
func provable(q *check.Question) bool {
	return q.Bug == "" && q.Buffer == sched.Dynamic && q.Patchers <= 1 && !q.Switch && !q.Early && !q.Preempt &&
		!slices.ContainsFunc(q.Roles, func(r cpus.Role) bool { return r != cpus.Busy })
}

// printReasons prints what each verdict rests on, and then how each unsafe question breaks.
func (c *common) printReasons(rows []check.VerdictRow) {
	for i := range rows {
		fmt.Fprintf(c.streams.out, "\n%s", c.asTyped(rows[i].RestsOn(c.width())))
	}
	for i := range rows {
		r := &rows[i]
		if r.Verdict != explore.Unsafe {
			continue
		}
		command := c.asTyped(check.Command(r.Short()))
		fmt.Fprintf(c.streams.out, "\n%s\n%s", c.narrowed(command), r.Story(c.width()))
		if r.Trace != nil {
			fmt.Fprint(c.streams.out, r.Trace.ExplainIn(c.width()))
		}
		if r.Swarm > 0 {
			fmt.Fprintf(c.streams.out, "On the live engine these %d steps end in the same violation.\n", r.Depth)
		}
	}
}
