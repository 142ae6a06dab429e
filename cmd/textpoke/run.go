package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// runFlags is the flags of run alone.
type runFlags struct {
	gridFlags
	engine     []string
	forTime    time.Duration
	without    []string
	migrate    bool
	interrupts bool
}

func runCommand(c *common) *cobra.Command {
	var r runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "do it: change every record while CPUs execute them",
		Long: "run enables and disables every record of a real kernel on a machine of goroutines that\n" +
			"execute them all the time, and counts. Any violation is printed, and the exit code is 1.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd, c) },
	}
	r.register(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&r.engine, "engine", []string{"live"}, "what executes the plans: live")
	f.DurationVar(&r.forTime, "for", 0, "stress: clients enable and disable random sets for so long, with trouble")
	f.StringSliceVar(&r.without, "without", nil, "trouble that a stress run leaves out: "+strings.Join(sim.TroubleNames(), ", "))
	f.BoolVar(&r.migrate, "migrate", false, "the patcher may change CPUs in the middle (a stress run does anyway)")
	f.BoolVar(&r.interrupts, "interrupts", false, "print the interrupts before, after and between, laid out as /proc/interrupts")
	return cmd
}

func (r *runFlags) run(cmd *cobra.Command, c *common) error {
	if _, err := namedList("engine", r.engine, []string{"live"}, identity); err != nil {
		return err
	}
	stress := cmd.Flags().Changed("for")
	switch {
	case stress && r.forTime <= 0:
		return fmt.Errorf("--for %v: want a time above 0, such as 10s", r.forTime)
	case !stress && len(r.without) > 0:
		return fmt.Errorf("--without goes with --for")
	case r.interrupts && c.format != results.FormatTable:
		return fmt.Errorf("--interrupts goes with --format table: it is text for people")
	case r.interrupts && stress:
		return fmt.Errorf("--interrupts does not go with --for: CPUs come and go")
	}
	trouble, err := sim.AllTrouble.Without(r.without)
	if err != nil {
		return fmt.Errorf("--without: %w", err)
	}
	grid, err := r.grid(cmd, c)
	if err != nil {
		return err
	}
	grid.Migrate = r.migrate
	jobs, err := grid.Jobs(cmd.Context())
	if err != nil {
		return err
	}
	s := &runner{common: c, flags: r, log: c.logger(), trouble: trouble, perCPU: sim.CPUTable()}
	err = c.rows(cmd.Context(), sim.RunTable(), len(jobs), func(i int, o *output) error {
		if stress {
			return s.stress(cmd.Context(), jobs[i], o)
		}
		return s.updates(cmd.Context(), jobs[i], o)
	}, &s.perCPU)
	s.printViolations()
	if err == nil && len(s.broken) > 0 {
		return errNo
	}
	return err
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
			return err
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
		return fmt.Errorf("%w; repeat with: %s", err, s.repeat(j))
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

// repeat is the command that runs one job again.
func (s *runner) repeat(j *sim.Job) string {
	cmd := "textpoke run " + j.Flags()
	if s.flags.forTime > 0 {
		cmd += fmt.Sprintf(" --for %v", s.flags.forTime)
	}
	if len(s.flags.without) > 0 {
		cmd += " --without " + strings.Join(s.flags.without, ",")
	}
	for _, f := range s.flags.filter {
		cmd += fmt.Sprintf(" --filter '%s'", f)
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
