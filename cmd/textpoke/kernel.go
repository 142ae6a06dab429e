// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/kernels/watch"
	"github.com/textpoke/textpoke/results"
)

func kernelCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "kernel"}
	cmd.AddCommand(kernelInspect(c), kernelPredict(c), kernelMeasure(c), kernelWatch(c), kernelMutate(c), kernelAudit(c),
		kernelRecord(c), kernelConform(c), kernelLearn(c), kernelForce(c), kernelBuild(c))
	return cmd
}

// measureFlags is the flags of measure.
type measureFlags struct {
	actions, modules []string
	whatIf           []string
	cpus             string
	repetitions      int
	memory           int
	limit            time.Duration
	compare, callers bool
	here             bool
}

// listed says whether --action asks which actions there are.
func listed(actions []string) bool { return len(actions) == 1 && actions[0] == "list" }

// withImage does something with the image that a command was given.
func withImage(cmd *cobra.Command, args []string, do func(image string) error) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: %s IMAGE --action A", cmd.CommandPath())
	}
	return do(args[0])
}

func kernelMeasure(c *common) *cobra.Command {
	var m measureFlags
	cmd := newCommand("measure [IMAGE [PATCHED]] [-- COMMAND...]", func(cmd *cobra.Command, args []string) error {
		switch {
		case listed(m.actions):
			return printRows(cmd.Context(), c, predictableColumns, "actions", vm.Actions())
		case m.here:
			return m.measureHere(cmd, c, args)
		case cmd.ArgsLenAtDash() > 0:
			return errors.New("a command behind -- goes with --here")
		case len(args) > 2:
			return fmt.Errorf("usage: %s IMAGE [PATCHED] --action A", cmd.CommandPath())
		case len(args) == 2:
			return m.measurePair(cmd.Context(), c, args[0], args[1])
		case len(m.whatIf) > 0:
			return errors.New("--what-if: want two images, without the patch and with it")
		}
		return withImage(cmd, args, func(image string) error { return m.measure(cmd.Context(), c, image) })
	})
	c.prints(cmd, "", vm.Columns.Table("interrupts"))
	c.prints(cmd, forPeople, vm.SummaryColumns.Table("summary"))
	c.prints(cmd, "of two images", vm.PairColumns.Table("pairs"))
	c.prints(cmd, "with --action list", predictableColumns.Table("actions"))
	m.boots(cmd, 4, 3)
	return declare(cmd, "kernel measure", &m, ledger.WhatIfHelp())
}

// boots adds the flags of commands that boot a kernel and switch something in it, with these numbers of CPUs and of
// repetitions where none is given.
func (m *measureFlags) boots(cmd *cobra.Command, cpus, repetitions int) {
	declare(cmd, "kernel boots", m, cpus, repetitions)
	offer(cmd, "action", askable)
}

// askable are the words that --action takes.
func askable() []string { return append(ledger.ActionNames(), "list") }

var errNoAction = errors.New("--action: want at least one; --action list prints them")

// config checks the flags.
func (m *measureFlags) config(c *common, image string) (vm.Config, error) {
	roles, err := vm.ParseCPUs(m.cpus)
	if err != nil {
		return vm.Config{}, fmt.Errorf("--%w", err)
	}
	for _, a := range m.actions {
		if err := vm.CheckAction(a); err != nil {
			return vm.Config{}, fmt.Errorf("--%w", err)
		}
	}
	if len(m.actions) == 0 {
		return vm.Config{}, errNoAction
	}
	return vm.Config{Image: image, CPUs: roles, Actions: m.actions, Repetitions: m.repetitions, Modules: m.modules,
		Memory: m.memory, Callers: m.callers, Progress: c.stage()}, nil
}

// stage shows on a terminal what has been done.
func (c *common) stage() func(string) {
	if !c.stderrIsTerminal() {
		return nil
	}
	return func(line string) { c.overwrite(line) }
}

// measure boots, counts and prints. If it is cut short, it prints the finished counts.
func (m *measureFlags) measure(ctx context.Context, c *common, image string) error {
	config, err := m.config(c, image)
	if err != nil {
		return err
	}
	c.note(append([]string{image}, m.modules...)...)
	var predicted vm.Predictions
	if m.compare {
		if predicted, err = m.predicted(c, config); err != nil {
			return err
		}
	}
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	measured, failed := m.booted(ctx, c, config)
	if measured == nil {
		return failed
	}
	if m.callers {
		return errors.Join(failed, printRows(ctx, c, vm.CallerColumns, "callers", measured.Stacks()))
	}
	return m.print(c, f, measured, measured.Compare(predicted), failed)
}

// print prints a measurement and how predictions did, besides what ended it early.
func (m *measureFlags) print(c *common, f *folder, measured *vm.Measurement, all []vm.Summary, failed error) error {
	var line string
	var wrong []string
	switch {
	case failed != nil:
		line = "INCOMPLETE"
	case m.compare:
		line, wrong = verdictOf(all)
	}
	if err := printMeasured(c, f, line, measured, all, m.here, failed == nil); err != nil || failed != nil || !m.compare {
		return errors.Join(failed, err)
	}
	return printWrong(c, line, wrong)
}

// measureHere counts on this machine: during a command behind --, or for the action in an instance of tracefs.
func (m *measureFlags) measureHere(cmd *cobra.Command, c *common, args []string) error {
	var command []string
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		args, command = args[:at], args[at:]
	}
	h := vm.Here{Arch: hostArch(), Repetitions: m.repetitions, Isolated: watch.IsolatedCPUs(watch.IsolatedFile)}
	if h.Action = "command"; len(command) == 0 {
		h.Action = "instance"
	}
	if cmd.Flags().Changed("action") {
		h.Action = strings.Join(m.actions, ",")
	}
	name, _, _ := strings.Cut(h.Action, ":")
	switch {
	case len(args) > 1 || m.compare != (len(args) == 1):
		return errors.New("--here: IMAGE, which runs here, goes with --compare, and --compare with it")
	case len(command) == 0 && name != "instance":
		return fmt.Errorf("--action %s --here: it is the whole machine's, and not done for you: do it by a command behind --", h.Action)
	case len(command) == 0:
		dir, err := tracefs.Mount()
		if err != nil {
			return fmt.Errorf("--here: %w", err)
		}
		h.Files = tracefs.At(dir)
	default:
		h.Do = func(ctx context.Context) error {
			run := exec.CommandContext(ctx, command[0], command[1:]...)
			run.Stdin, run.Stdout, run.Stderr = c.streams.in, c.streams.err, c.streams.err // stdout is for the counts
			return run.Run()
		}
	}
	var predicted vm.Predictions
	if m.compare {
		k, err := ledger.Open(args[0])
		if err != nil {
			return err
		}
		c.note(args[0])
		state, err := k.Here("/")
		if err != nil {
			return fmt.Errorf("--here: %w", err)
		}
		var notes []string
		predicted, notes = vm.Predicted(k.In(state), []string{h.Action})
		for _, note := range notes {
			fmt.Fprintln(c.streams.err, "textpoke:", note)
		}
	}
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), m.limit)
	defer cancel()
	measured, failed := h.Measure(ctx)
	if measured == nil || len(measured.Readings) == 0 {
		return failed
	}
	return m.print(c, f, measured, measured.Compare(predicted), failed)
}

// predicted is what each action sends, by an image.
func (m *measureFlags) predicted(c *common, config vm.Config, whatIf ...string) (vm.Predictions, error) {
	predicted, notes, err := vm.Predict(config, whatIf...)
	for _, note := range notes {
		fmt.Fprintln(c.streams.err, "textpoke:", note)
	}
	return predicted, err
}

// booted counts on one kernel. If it is cut short, the finished counts come with the error; nil
// if there are none.
func (m *measureFlags) booted(ctx context.Context, c *common, config vm.Config) (*vm.Measurement, error) {
	limited, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	measured, failed := vm.Measure(limited, config)
	if measured == nil || len(measured.Readings) == 0 && failed != nil {
		return nil, failed
	}
	for _, s := range measured.Skips {
		fmt.Fprintf(c.streams.err, "textpoke: skipped %s: %s\n", s.Action, s.Why)
	}
	if len(measured.Readings) == 0 {
		return nil, fmt.Errorf("%s: no action could be done", config.Image)
	}
	return measured, failed
}

// measurePair boots two kernels, one after the other, and prints them side by side.
func (m *measureFlags) measurePair(ctx context.Context, c *common, images ...string) error {
	if m.callers {
		return errors.New("--callers: want one image")
	}
	var sides [2][]vm.Summary
	var forecast vm.Predictions
	for i, image := range images {
		config, err := m.config(c, image)
		if err != nil {
			return err
		}
		predicted, err := m.predicted(c, config)
		if err == nil && i == 0 && len(m.whatIf) > 0 {
			forecast, err = m.predicted(c, config, m.whatIf...)
		}
		if err != nil {
			return err
		}
		c.note(image)
		measured, err := m.booted(ctx, c, config)
		if err != nil {
			return err
		}
		sides[i] = measured.Compare(predicted)
	}
	pairs := vm.Pairs(sides[0], sides[1], forecast)
	judged := spelling.Each(pairs, (*vm.Pair).Judged)
	line, wrong := verdictOf(slices.Concat(judged...))
	if err := printAnswer(ctx, c, line, vm.PairColumns, "pairs", pairs); err != nil {
		return err
	}
	return printWrong(c, line, wrong)
}

// verdictOf says how predictions did, in a line, and what is wrong with each that did not hold.
func verdictOf(all []vm.Summary) (line string, wrong []string) {
	exact, explained, wrong := vm.Verdict(all)
	return fmt.Sprintf("%s: predicted exactly: %d; background or shared interrupts: %d; not explained: %d",
		map[bool]string{true: "YES", false: "NO"}[len(wrong) == 0], exact, explained, len(wrong)), wrong
}

// printWrong prints the predictions that did not hold; scripts get the answer here, too. One that is wrong is the answer no.
func printWrong(c *common, answer string, wrong []string) error {
	w := c.beside()
	if !c.people() {
		fmt.Fprintln(w, answer)
	}
	for _, line := range wrong {
		fmt.Fprintln(w, " ", line)
	}
	if len(wrong) > 0 {
		return errNo
	}
	return nil
}

// printMeasured prints every count for scripts, and a line a row for people.
func printMeasured(c *common, f *folder, answer string, m *vm.Measurement, all []vm.Summary, here, complete bool) error {
	columns := results.Of(vm.Columns, func(c *vm.Compared) *vm.Count { return &c.Count })
	if slices.ContainsFunc(all, func(s vm.Summary) bool { return s.Compared }) {
		columns = slices.Concat(columns, vm.ComparedColumns)
	}
	counts, err := columns.Fill("kernel-measure", vm.WithPredictions(m.Counts(), all))
	if err != nil {
		return err
	}
	summaries, err := vm.SummaryColumns.Fill("summary", all)
	if err != nil {
		return err
	}
	shown := counts
	if c.people() {
		// Leave out rows that count without the action too, such as timers.
		quiet := slices.DeleteFunc(slices.Clone(all), func(s vm.Summary) bool { return s.Quietest <= s.Idle && !s.Compared })
		if shown, err = vm.SummaryColumns.Fill("summary", quiet); err != nil {
			return err
		}
		if answer != "" {
			fmt.Fprintf(c.streams.out, "%s\n\n", c.painted(answer))
		}
		fmt.Fprintf(c.streams.out, "%s %s, %s\n\n", m.Arch, m.Release, map[bool]string{true: "here", false: "booted"}[here])
	}
	if err := c.printTable(shown); err != nil {
		return err
	}
	if err := f.write(&counts, &summaries); err != nil {
		return err
	}
	return f.close(complete)
}
