// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/check"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/litmus"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// checkFlags is the flags of check.
type checkFlags struct {
	searchFlags

	bug, litmus                                        []string
	fixed, list                                        bool
	export, trace, replay, record, conform, checkpoint string
	html                                               string
	engine                                             string
	every                                              time.Duration
	resume, liveness                                   bool
}

func checkCommand(c *common) *cobra.Command {
	var k checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "is it safe? every interleaving of a small machine",
		Long: "check explores every interleaving of a few CPUs that execute a few sites while a patcher\n" +
			"enables and disables them. Safe means that nothing can break. Of what can, the shortest way to\n" +
			"break it is printed, and the exit code is 1. A search that is cut short, by a limit too, is\n" +
			"incomplete, and the exit code is 3. Lists mean the cross product.",
		Example: "  textpoke check --arch x86_64\n" +
			"  textpoke check --arch x86_64 --mutate drop-sync-1\n" +
			"  textpoke check --arch x86_64,arm64 --protocol breakpoint --cpus 2,3,4 --format csv\n" +
			"  textpoke check --plan my.plan --arch x86_64\n" +
			"  textpoke check --bug lost-text-mutex\n" +
			"  textpoke check --arch x86_64 --mutate drop-sync-1 --trace t.json\n" +
			"  textpoke check --replay t.json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.run(cmd, c) },
	}
	c.prints(cmd, "", check.Columns.Table("check"))
	c.prints(cmd, "with --list", check.ListColumns.Table("list"))
	c.prints(cmd, "with --litmus", check.LitmusColumns.Table("litmus"))
	k.register(cmd, c)
	return cmd
}

func (k *checkFlags) register(cmd *cobra.Command, c *common) {
	addAxes(cmd, check.Axes)
	k.searchFlags.register(cmd)
	addShard(cmd, c)
	addQueue(cmd, c, "let workers do it that take points from this queue (see worker)")
	f := cmd.Flags()
	f.StringArrayVar(&k.bug, "bug", nil,
		"`name` of a scenario of the museum, a bug or a tracer case (--list), in place of a protocol; repeatable")
	offer(cmd, "bug", check.BugNames())
	f.BoolVar(&k.fixed, "fixed", false, "with --bug: with the upstream fix")
	f.BoolVar(&k.list, "list", false,
		"list protocols, mutations, bugs and litmus tests, and the bugs that it cannot tell, with the reason")
	f.StringArrayVar(&k.litmus, "litmus", nil,
		"`file` with a litmus test of the fetch model, or the name of a shipped one (--list): is its outcome "+
			"allowed? repeatable")
	offer(cmd, "litmus", append([]string{"all"}, litmus.ShippedNames()...))
	f.StringVar(&k.export, "export", "",
		"write the model in the `language` of another checker instead of exploring it: promela")
	offer(cmd, "export", exports)
	f.StringVar(&k.trace, "trace", "", "save the counterexample, if there is one, in this `file`, as JSON")
	f.StringVar(&k.html, "html", "",
		"write a page to this `file`, on which counterexamples are stepped forwards and backwards; - is stdout")
	f.StringVar(&k.replay, "replay", "", "force the counterexample in this `file` on another engine")
	f.StringVar(&k.engine, "engine", sim.LiveEngine.String(),
		"with --replay: `engine` that it is forced on: "+strings.Join(sim.ReplayNames(), " or "))
	offer(cmd, "engine", sim.ReplayNames())
	f.StringVar(&k.record, "record", "", "run it on the live engine, and save what every CPU did in this `file`")
	f.StringVar(&k.conform, "conform", "",
		"take the run that is recorded in this `file` through the checker's semantics, step by step")
	f.StringVar(&k.checkpoint, "checkpoint", "",
		"save the search in this `file` when it is cut short, and every now and then")
	f.DurationVar(&k.every, "every", 10*time.Minute, "`time` between two checkpoints")
	f.BoolVar(&k.liveness, "liveness", false,
		"also ask whether every update can end and every CPU come back between two calls, from every state")
	f.BoolVar(&k.resume, "resume", false, "go on from the file of --checkpoint")
}

func (k *checkFlags) run(cmd *cobra.Command, c *common) error {
	if err := c.refuseQueued(cmd, "jobs", "checkpoint", "rate", "list", "litmus", "export", "replay", "record",
		"conform"); err != nil {
		return err
	}
	instead, err := k.instead(cmd)
	switch {
	case err != nil:
		return err
	case instead != nil:
		return instead(cmd, c)
	}
	if err := k.refuseSwarm(cmd); err != nil {
		return err
	}
	o, err := k.options()
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("every") && k.checkpoint == "" {
		return errors.New("--every goes with --checkpoint")
	}
	questions, err := k.questions(cmd, c)
	if err != nil {
		return err
	}
	if len(questions) > 1 && (k.trace != "" || k.checkpoint != "") {
		return fmt.Errorf("--trace and --checkpoint are for one question, and these are %d", len(questions))
	}
	questions = divided(c, questions)
	a := &asked{common: c, questions: questions, options: o, swarm: k.swarm, trace: k.trace}
	if c.employ != nil {
		c.employ(a.work())
		return nil
	}
	rows, err := a.answers(cmd.Context(), k.rate, &output{table: check.Columns.Table("check"), hidden: k.html == "-"})
	unsafe := slices.DeleteFunc(slices.Clone(rows), func(r check.VerdictRow) bool { return r.Verdict != explore.Unsafe })
	if k.html != "" && len(rows) > 0 && (err == nil || err == errNo) {
		err = cmp.Or(c.toPage(k.html, pageOf(rows).Write), err)
	}
	if k.html != "-" {
		c.printRests(rows)
		c.printTraces(unsafe)
	}
	if a.unsaved != nil && err == errNo {
		err = a.unsaved
	}
	return err
}

// refuseSwarm refuses what a swarm does not know.
func (k *checkFlags) refuseSwarm(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case !changed("swarm"):
		return nil
	case k.swarm < 1 || k.swarm > maxSwarm:
		return fmt.Errorf("--swarm %d: want 1 to %d searches", k.swarm, maxSwarm)
	}
	for _, name := range []string{"exact", "liveness", "limit-time", "limit-memory", "checkpoint", "rate"} {
		if changed(name) {
			return fmt.Errorf("--%s goes without --swarm, whose searches are bounded by --limit-states alone", name)
		}
	}
	return nil
}

// maxSwarm is how many searches nobody asks for by mistake.
const maxSwarm = 100_000

// options reads the flags of the search.
func (k *checkFlags) options() (explore.Options, error) {
	o, err := k.searchFlags.options()
	switch {
	case err != nil:
		return o, err
	case k.every <= 0:
		return o, fmt.Errorf("--every %v: want a time above 0", k.every)
	case k.resume && k.checkpoint == "":
		return o, errors.New("--resume goes with --checkpoint")
	}
	o.Checkpoint, o.Every, o.Resume, o.Liveness = k.checkpoint, k.every, k.resume, k.liveness
	return o, nil
}

// questions reads the flags of what is to be checked.
func (k *checkFlags) questions(cmd *cobra.Command, c *common) ([]*check.Question, error) {
	choices := chosen(cmd, check.Axes)
	if k.bug != nil {
		for _, flag := range slices.Sorted(maps.Keys(choices)) {
			return nil, fmt.Errorf("--%s does not go with --bug: a scenario says itself what it is about", flag)
		}
		return check.BugQuestions(k.bug, k.fixed)
	}
	if k.fixed {
		return nil, errors.New("--fixed goes with --bug")
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
	if width := c.width(); width > 0 && displayed(line) > width {
		line = strings.Replace(line, "; for any", "\nfor any", 1)
	}
	return c.asTyped(line)
}

// provable tells whether prove can be asked the same of any number of CPUs and sites.
func provable(q *check.Question) bool {
	return q.Bug == "" && q.Buffer == sched.Dynamic && q.Patchers <= 1 && !q.Switch && !q.Early && !q.Preempt &&
		!slices.ContainsFunc(q.Roles, func(r cpus.Role) bool { return r != cpus.Busy })
}

// printRests prints what each verdict rests on, for people.
func (c *common) printRests(rows []check.VerdictRow) {
	if !c.people() {
		return
	}
	for i := range rows {
		fmt.Fprintf(c.streams.out, "\n%s", c.asTyped(rows[i].RestsOn(c.width())))
	}
}

// printTraces prints how each unsafe question breaks, for people.
func (c *common) printTraces(unsafe []check.VerdictRow) {
	if !c.people() {
		return
	}
	for i := range unsafe {
		r := &unsafe[i]
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
