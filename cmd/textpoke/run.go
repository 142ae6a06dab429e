// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
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

func newRun() *runFlags {
	return &runFlags{gridFlags: gridFlags{uses: sim.UseLive | sim.UseTimed | sim.UseHardware}}
}

func runCommand(c *common) *cobra.Command {
	r := newRun()
	cmd := newCommand("run", func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context(), c, c.asked) })
	c.prints(cmd, "", sim.RunColumns.Table("run"))
	r.register(cmd, c)
	add(cmd, r.fields()...)
	return declare(cmd, "run trace", r)
}

// fields are the choices that are no axes.
func (r *runFlags) fields() []*choice.Field {
	return append(append(r.gridFlags.fields(), fields("run", r)...),
		choice.List(&r.without, "without", "", "trouble that a stress run leaves out", choice.OneOf(sim.TroubleNames())))
}

func (r *runFlags) run(ctx context.Context, c *common, asked choice.Request) error {
	s, err := r.sweep(ctx, c, asked)
	if err != nil {
		return err
	}
	c.extrapolated(s.configs)
	keep, err := c.openTrace(r.trace, s.configs)
	if err != nil {
		return err
	}
	err = keep(s.run(ctx))
	printRanges(c.beside(), s.configs)
	return err
}

// sweep is what a request asks for.
func (r *runFlags) sweep(ctx context.Context, c *common, asked choice.Request) (*sweep, error) {
	if r.interrupts && c.format != results.FormatTable {
		return nil, errors.New("--interrupts goes with --format table: it is text for people")
	}
	trouble, err := sim.AllTrouble.Without(r.without)
	if err != nil {
		return nil, err
	}
	grid, err := r.grid(asked, c)
	if err != nil {
		return nil, err
	}
	configs, err := c.combinations(ctx, grid)
	if err != nil {
		return nil, err
	}
	workers, err := r.workers(configs)
	if err != nil {
		return nil, err
	}
	perCPU, one := sim.CPUColumns.Table("cpus"), &runner{common: c, flags: r, log: c.logger(), trouble: trouble}
	s := &sweep{
		judged: newJudged(c, withChosen(sim.RunColumns.Table("run"), grid), r.limits), flags: &r.sweepFlags, configs: configs,
		perPoint: 2, beside: &perCPU, workers: workers, point: one.updates, spoken: r.interrupts,
	}
	if workers == 1 {
		s.again = "their times, traps and calls are those of the run that was interrupted: another would have others"
	}
	if r.forTime > 0 {
		s.perPoint, s.point = 1, one.stress
	}
	s.headed(s.Outcome)
	return s, nil
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

// runner carries the jobs of one run out.
type runner struct {
	*common
	flags   *runFlags
	log     *zap.Logger
	trouble sim.Trouble
}

// updates enables everything and disables it again.
func (s *runner) updates(ctx context.Context, c *sim.Config, add func(points.Row)) (wrong string, broken []string,
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
func (s *runner) update(ctx context.Context, engine sim.Engine, enable bool, add func(points.Row)) error {
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

// stress lets many clients at it, or has this machine's CPUs do it again and again.
func (s *runner) stress(ctx context.Context, c *sim.Config, add func(points.Row)) (wrong string, broken []string,
	err error) {
	c.Revision, c.Log = built.Revision, s.log
	stress := func() (sim.RunRow, []cpus.Violation, error) { return sim.Stress(ctx, *c, s.flags.forTime, s.trouble) }
	if c.Engine == sim.HardwareEngine {
		stress = func() (sim.RunRow, []cpus.Violation, error) { return sim.Soak(ctx, *c, s.flags.forTime) }
	}
	row, first, err := stress()
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
func (s *runner) add(row sim.RunRow, text string, add func(points.Row)) error {
	cells, err := sim.RunColumns.Row(&row)
	if err != nil {
		return err
	}
	r := points.Row{Cells: cells, Text: text}
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

// extrapolated warns of machines that are larger than those the costs are from.
func (c *common) extrapolated(configs []sim.Config) {
	said := map[string]bool{}
	for i := range configs {
		k := configs[i].Calibration
		if n := len(configs[i].Roles); k != nil && n > k.CPUs && !said[k.Name] {
			said[k.Name] = true
			c.logger().Warn("the calibration is of a smaller machine: its times for a larger one are extrapolated",
				zap.String("calibration", k.Name), zap.Int("its_cpus", k.CPUs), zap.Int("cpus", n))
		}
	}
}

// printRanges prints the published ranges of costs for runs on the timed engine that
// name no calibration.
func printRanges(w io.Writer, configs []sim.Config) {
	asked := slices.DeleteFunc(slices.Clone(configs), func(c sim.Config) bool {
		return c.Engine != sim.TimedEngine ||
			c.Calibration != nil
	})
	if len(asked) == 0 {
		return
	}
	fmt.Fprint(w, "\nNo calibration, no times: name one with --calibration (textpoke calibrate list). What "+
		"others have published:\n")
	for _, r := range calibration.Ranges() {
		fmt.Fprintf(w, "  %-36s %s  (%s)\n", r.Name, between(r.Low, r.High), strings.Join(r.Sources, "; "))
	}
	low, high := calibration.Ranges()[0].Low, calibration.Ranges()[0].High // of a round
	for i := range asked {
		if j, err := sim.NewJob(asked[i]); err == nil {
			if rounds := j.Rounds(); rounds > 0 {
				fmt.Fprintf(w, "%d rounds of that range are %s: %s\n", rounds, between(float64(rounds)*low, float64(rounds)*high),
					j)
			}
		}
	}
}

// between is a range of times, in nanoseconds.
func between(low, high float64) string {
	short := func(ns float64) time.Duration {
		d := time.Duration(ns)
		for unit := time.Duration(1); unit < d; unit *= 10 { // three digits are worth reading
			if d < 1000*unit {
				return d.Round(unit)
			}
		}
		return d
	}
	return fmt.Sprintf("%v to %v", short(low), short(high))
}
