// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/journal"
	"github.com/textpoke/textpoke/sim"
)

// runFlags is the flags of run alone.
type runFlags struct {
	gridFlags
	forTime    time.Duration
	without    []string
	rate       bool
	interrupts bool
	trace      string
}

func runCommand(c *common) *cobra.Command {
	r := runFlags{gridFlags: gridFlags{uses: sim.UseLive | sim.UseTimed | sim.UseHardware}}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "do it: change every record while CPUs execute them",
		Long: "run enables and disables every record of a real kernel on a machine of goroutines that\n" +
			"execute them all the time, and counts; or, with --engine timed, on a modelled machine in\n" +
			"virtual time, or, with --engine hardware, on the CPUs of this machine. Lists mean the cross\n" +
			"product. Any violation is printed, and the exit code is 1.",
		Example: "  textpoke run --arch x86_64 --interrupts\n" +
			"  textpoke run --arch arm64 --cpus busy=6,isolated=2 --protocol native,breakpoint\n" +
			"  textpoke run --arch x86_64 --plan my.plan\n" +
			"  textpoke run --arch arm64 --dispatch list,call-ops --tracers relevant=1,irrelevant=100\n" +
			"  textpoke run --arch x86_64 --engine timed --calibration e5-2699 --cpus busy=36,isolated=8\n" +
			"  textpoke run --records gen:n=2000 --for 10s --without unplug",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd, c) },
	}
	c.prints(cmd, "", sim.RunColumns.Table("run"))
	r.gridFlags.register(cmd, c)
	f := cmd.Flags()
	f.DurationVar(&r.forTime, "for", 0,
		"stress: for this `time`, such as 10s, clients enable and disable random sets, with trouble")
	f.StringSliceVar(&r.without, "without", nil,
		"`list` of trouble that a stress run leaves out: "+strings.Join(sim.TroubleNames(), ", "))
	offer(cmd, "without", sim.TroubleNames())
	f.BoolVar(&r.rate, "rate", false, "timed engine: fill in events_per_s, which is another number every time")
	f.BoolVar(&r.interrupts, "interrupts", false,
		"print the interrupts before, after and between, laid out as /proc/interrupts")
	f.StringVar(&r.trace, "trace", "",
		"write a timeline of the runs to this `file`, for ui.perfetto.dev (docs/timelines.md)")
	return cmd
}

// check refuses flags that do not go together.
func (r *runFlags) check(cmd *cobra.Command, format results.Format) error {
	stress := cmd.Flags().Changed("for")
	switch {
	case stress && r.forTime <= 0:
		return fmt.Errorf("--for %v: want a time above 0, such as 10s", r.forTime)
	case !stress && cmd.Flags().Changed("without"):
		return fmt.Errorf("--without goes with --for")
	case r.interrupts && format != results.FormatTable:
		return fmt.Errorf("--interrupts goes with --format table: it is text for people")
	case r.interrupts && stress:
		return fmt.Errorf("--interrupts does not go with --for: CPUs come and go")
	case r.trace != "" && r.resume:
		return fmt.Errorf("--trace goes without --resume: rows that are reused leave nothing to show")
	case stress && cmd.Flags().Changed("engine"):
		return fmt.Errorf("--for goes without --engine: it is for the live engine")
	case stress && cmd.Flags().Changed("dispatch"):
		return fmt.Errorf("--dispatch goes without --for: clients of a stress run are not told apart")
	}
	return nil
}

func (r *runFlags) run(cmd *cobra.Command, c *common) error {
	if err := r.check(cmd, c.format); err != nil {
		return err
	}
	trouble, err := r.trouble(cmd)
	if err != nil {
		return err
	}
	grid, err := r.grid(cmd, c)
	if err != nil {
		return err
	}
	configs, err := c.combinations(cmd.Context(), grid)
	if err != nil {
		return err
	}
	if r.rate && !executedBy(configs, sim.TimedEngine) {
		return errors.New("--rate goes with --engine timed")
	}
	if c.queued() && executedBy(configs, sim.HardwareEngine) {
		return errors.New("--queue goes without --engine hardware: rows are of the machine that it runs on")
	}
	workers, err := r.workers(configs)
	if err != nil {
		return err
	}
	c.extrapolated(configs)
	trace, err := c.openTrace(cmd, r.trace, configs)
	if err != nil {
		return err
	}
	perCPU := sim.CPUColumns.Table("cpus")
	s := &runner{common: c, flags: r, log: c.logger(), trouble: trouble}
	w := &sweep{
		common: c, flags: &r.sweepFlags, configs: configs, perPoint: 2,
		table: withChosen(sim.RunColumns.Table("run"), grid), beside: &perCPU, workers: workers, point: s.updates,
		spoken: r.interrupts,
	}
	if workers == 1 {
		w.again = "their times, traps and calls are those of the run that was interrupted: another would have others"
	}
	if r.forTime > 0 {
		w.perPoint, w.point = 1, s.stress
	}
	w.headline = w.outcome
	err = trace.close(w.run(cmd.Context()))
	if c.format == results.FormatTable {
		printRanges(c.streams.out, configs)
	} else {
		printRanges(c.streams.err, configs)
	}
	return err
}

// workers is how many combinations are worked on at a time, 0 for one a core. The
// CPUs of the live and hardware engines never rest, and a timeline is of one run
// after the other.
func (r *runFlags) workers(configs []sim.Config) (int, error) {
	live := executedBy(configs, sim.LiveEngine) || executedBy(configs, sim.HardwareEngine)
	switch {
	case !live && r.trace == "":
		return 0, nil
	case r.jobs <= 1:
		return 1, nil
	case live:
		return 0, fmt.Errorf("--jobs %d: want 1 with the live and hardware engines, whose CPUs never rest", r.jobs)
	}
	return 0, fmt.Errorf("--jobs %d: want 1 with --trace: a timeline shows one run after the other", r.jobs)
}

// executedBy tells whether an engine executes some of the combinations.
func executedBy(configs []sim.Config, engine sim.EngineKind) bool {
	return slices.ContainsFunc(configs, func(c sim.Config) bool { return c.Engine == engine })
}

// trouble reads --without.
func (r *runFlags) trouble(cmd *cobra.Command) (sim.Trouble, error) {
	if cmd.Flags().Changed("without") {
		if _, err := namedList("without", r.without, sim.TroubleNames(), identity); err != nil {
			return sim.Trouble{}, err
		}
	}
	return sim.AllTrouble.Without(r.without)
}

// runner carries the jobs of one run out.
type runner struct {
	*common
	flags   *runFlags
	log     *zap.Logger
	trouble sim.Trouble
}

// updates enables everything and disables it again.
func (s *runner) updates(ctx context.Context, c *sim.Config, add func(journal.Row)) (wrong string, broken []string,
	err error) {
	c.Revision, c.Log = built.Revision, s.log
	j, err := sim.NewJob(*c)
	if err != nil {
		return "", nil, err
	}
	engine, err := sim.NewEngine(j)
	if err != nil {
		return "", nil, err
	}
	defer engine.Close()
	for _, enable := range []bool{true, false} {
		if err = s.update(ctx, engine, enable, add); err != nil {
			break
		}
	}
	wrong, broken = s.violations(c, engine.Violations())
	return wrong, broken, s.failed(c, err)
}

// update enables or disables everything.
func (s *runner) update(ctx context.Context, engine sim.Engine, enable bool, add func(journal.Row)) error {
	before := engine.Counts()
	row, err := engine.Update(ctx, enable)
	if err != nil {
		return err
	}
	if row.Modelled != nil {
		row.Modelled.Rate = s.flags.rate
	}
	var text strings.Builder
	if s.flags.interrupts {
		if err := sim.WriteInterrupts(&text, row, before, engine.Counts()); err != nil {
			return err
		}
	}
	return s.add(row, text.String(), add)
}

// stress lets many clients at it.
func (s *runner) stress(ctx context.Context, c *sim.Config, add func(journal.Row)) (wrong string, broken []string,
	err error) {
	c.Revision, c.Log = built.Revision, s.log
	row, first, err := sim.Stress(ctx, *c, s.flags.forTime, s.trouble)
	wrong, broken = s.violations(c, first)
	if err == nil {
		err = s.add(row, "", add)
	}
	if err != nil {
		return wrong, broken, s.failed(c, err)
	}
	return wrong, broken, ctx.Err() // a stress run that was cut short is not finished
}

// add adds a row and those of its CPUs.
func (s *runner) add(row sim.RunRow, text string, add func(journal.Row)) error {
	cells, err := sim.RunColumns.Row(&row)
	if err != nil {
		return err
	}
	r := journal.Row{Cells: cells, Text: text}
	for _, cpu := range row.CPUs(0) { // the sweep knows the number
		cells, err := sim.CPUColumns.Row(cpu)
		if err != nil {
			return err
		}
		r.Others = append(r.Others, cells)
	}
	add(r)
	return nil
}

// failed tells updates that failed, which is no fault of the request, from other
// errors.
func (s *runner) failed(c *sim.Config, err error) error {
	var broken *poke.Error
	if !errors.As(err, &broken) || sim.Stopped(err) {
		return err
	}
	return noError{fmt.Errorf("%w; repeat with: %s", err, s.repeat(c))}
}

// repeat is the command that runs one job again.
func (s *runner) repeat(c *sim.Config) string {
	words := append([]string{"run"}, c.Flags()...)
	if s.flags.forTime > 0 {
		words = append(words, "--for", s.flags.forTime.String())
	}
	if len(s.flags.without) > 0 {
		words = append(words, "--without", strings.Join(s.flags.without, ","))
	}
	if s.flags.kallsyms != "" {
		words = append(words, "--kallsyms", s.flags.kallsyms)
	}
	return sim.Command(words...)
}

// shownViolations is how many violations of one job are printed.
const shownViolations = 8

// violations says what went wrong in one combination, and how to see it again, and which
// properties that broke; "" if nothing did.
func (s *runner) violations(c *sim.Config, first []cpus.Violation) (wrong string, broken []string) {
	if len(first) == 0 {
		return "", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nviolations of %s\n", c)
	for i, v := range first {
		if property := string(v.Property); !slices.Contains(broken, property) {
			broken = append(broken, property)
		}
		switch {
		case i < shownViolations:
			fmt.Fprintf(&b, "  %s\n", v)
		case i == shownViolations:
			fmt.Fprintf(&b, "  and more\n")
		}
	}
	fmt.Fprintf(&b, "  repeat with: %s\n", s.repeat(c))
	return b.String(), broken
}
