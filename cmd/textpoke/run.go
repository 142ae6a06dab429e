package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// engines are the names of the engines, the default first.
var engines = []string{"live"}

// runFlags is the flags of run alone.
type runFlags struct {
	gridFlags
	engine     []string
	forTime    time.Duration
	without    []string
	migrate    bool
	interrupts bool
	trace      string
}

func runCommand(c *common) *cobra.Command {
	var r runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "do it: change every record while CPUs execute them",
		Long: "run enables and disables every record of a real kernel on a machine of goroutines that\n" +
			"execute them all the time, and counts. Any violation is printed, and the exit code is 1." + columnsHelp(sim.RunTable()),
		Example: "  textpoke run --arch x86_64 --interrupts\n" +
			"  textpoke run --arch arm64 --cpus busy=6,isolated=2 --protocol native,breakpoint\n" +
			"  textpoke run --arch x86_64 --plan my.plan\n" +
			"  textpoke run --records gen:n=2000 --for 10s --without unplug",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd, c) },
	}
	r.register(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&r.engine, "engine", engines, "`list` of engines that execute the plans: "+strings.Join(engines, ", "))
	offer(cmd, "engine", engines)
	f.DurationVar(&r.forTime, "for", 0, "stress: for this `time`, such as 10s, clients enable and disable random sets, with trouble")
	f.StringSliceVar(&r.without, "without", nil, "`list` of trouble that a stress run leaves out: "+strings.Join(sim.TroubleNames(), ", "))
	offer(cmd, "without", sim.TroubleNames())
	f.BoolVar(&r.migrate, "migrate", false, "the patcher may change CPUs in the middle (a stress run does anyway)")
	f.BoolVar(&r.interrupts, "interrupts", false, "print the interrupts before, after and between, laid out as /proc/interrupts")
	f.StringVar(&r.trace, "trace", "", "write a timeline of the runs to this `file`, for ui.perfetto.dev (docs/timelines.md)")
	return cmd
}

func (r *runFlags) run(cmd *cobra.Command, c *common) error {
	if _, err := namedList("engine", r.engine, engines, identity); err != nil {
		return err
	}
	stress := cmd.Flags().Changed("for")
	switch {
	case stress && r.forTime <= 0:
		return fmt.Errorf("--for %v: want a time above 0, such as 10s", r.forTime)
	case !stress && cmd.Flags().Changed("without"):
		return fmt.Errorf("--without goes with --for")
	case r.interrupts && c.format != results.FormatTable:
		return fmt.Errorf("--interrupts goes with --format table: it is text for people")
	case r.interrupts && stress:
		return fmt.Errorf("--interrupts does not go with --for: CPUs come and go")
	}
	trouble, err := r.trouble(cmd)
	if err != nil {
		return err
	}
	grid, err := r.grid(cmd, c)
	if err != nil {
		return err
	}
	grid.Migrate = r.migrate
	jobs, err := c.jobs(cmd.Context(), grid)
	if err != nil {
		return err
	}
	trace, err := c.openTrace(cmd, r.trace, jobs)
	if err != nil {
		return err
	}
	s := &runner{common: c, flags: r, log: c.logger(), trouble: trouble, perCPU: sim.CPUTable()}
	err = c.rows(cmd.Context(), sim.RunTable(), len(jobs), func(i int, o *output) error {
		if stress {
			return s.stress(cmd.Context(), jobs[i], o)
		}
		err := s.updates(cmd.Context(), jobs[i], o)
		if r.interrupts && i == len(jobs)-1 {
			fmt.Fprintln(c.streams.out) // the table follows
		}
		return err
	}, &s.perCPU)
	err = trace.close(err)
	s.printViolations()
	switch {
	case len(s.broken) == 0 || errors.Is(err, errNo):
		return err
	case err != nil:
		return noError{err}
	}
	return errNo
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
	perCPU  results.Table
	rows    int
	broken  []brokenRun
}

// brokenRun is the violations of one job, and how to see them again.
type brokenRun struct {
	job    *sim.Job
	first  []cpus.Violation
	repeat string
}

// updates enables everything and disables it again.
func (s *runner) updates(ctx context.Context, j *sim.Job, o *output) error {
	live, err := sim.NewLive(j, revision(), s.log)
	if err != nil {
		return err
	}
	defer live.Close()
	for _, enable := range []bool{true, false} {
		before := live.Counts()
		row, err := live.Update(ctx, enable)
		if err != nil {
			s.note(j, live.Violations())
			return s.failed(j, err)
		}
		if err := s.add(row, o); err != nil {
			return err
		}
		if s.flags.interrupts {
			if err := sim.WriteInterrupts(s.streams.out, row, before, live.Counts()); err != nil {
				return err
			}
		}
	}
	s.note(j, live.Violations())
	return nil
}

// stress lets many clients at it.
func (s *runner) stress(ctx context.Context, j *sim.Job, o *output) error {
	row, first, err := sim.Stress(ctx, j.Config, s.flags.forTime, s.trouble, revision(), s.log)
	s.note(j, first)
	if err != nil {
		return s.failed(j, err)
	}
	if err := s.add(row, o); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *runner) add(row sim.RunRow, o *output) error {
	err := row.AddCPUs(&s.perCPU, s.rows)
	s.rows++
	if err != nil {
		return err
	}
	return o.add(row.Cells()...)
}

func (s *runner) note(j *sim.Job, first []cpus.Violation) {
	if len(first) > 0 {
		s.broken = append(s.broken, brokenRun{j, first, s.repeat(j)})
	}
}

// failed tells updates that failed, which is no fault of the request, from other
// errors.
func (s *runner) failed(j *sim.Job, err error) error {
	var broken *poke.Error
	if !errors.As(err, &broken) || sim.Stopped(err) {
		return err
	}
	return noError{fmt.Errorf("%w; repeat with: %s", err, s.repeat(j))}
}

// repeat is the command that runs one job again.
func (s *runner) repeat(j *sim.Job) string {
	cmd := "textpoke run " + j.Flags() + " --records " + quote(j.Table.Name())
	if s.flags.forTime > 0 {
		cmd += fmt.Sprintf(" --for %v", s.flags.forTime)
	}
	if len(s.flags.without) > 0 {
		cmd += " --without " + strings.Join(s.flags.without, ",")
	}
	if s.flags.kallsyms != "" {
		cmd += " --kallsyms " + quote(s.flags.kallsyms)
	}
	for _, f := range s.flags.filter {
		cmd += " --filter " + quote(f)
	}
	return cmd
}

// shownViolations is how many violations of one job are printed.
const shownViolations = 8

// printViolations prints each violation where people look: below the table, or
// on stderr when stdout is for scripts.
func (s *runner) printViolations() {
	w := s.streams.out
	if s.format != results.FormatTable {
		w = s.streams.err
	}
	for _, b := range s.broken {
		fmt.Fprintf(w, "\nviolations of %s\n", b.job)
		for i, v := range b.first {
			if i == shownViolations {
				fmt.Fprintf(w, "  and more\n")
				break
			}
			fmt.Fprintf(w, "  %s\n", v)
		}
		fmt.Fprintf(w, "  repeat with: %s\n", b.repeat)
	}
}
