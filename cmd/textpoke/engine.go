package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sim"
)

// engineFlags is the flags that say which engines execute the plans, and what the
// timed one rests on.
type engineFlags struct {
	scenarioFlags
	engine, calibration []string
	calls, entries      []string
	preempt, rate       bool
}

func (e *engineFlags) register(cmd *cobra.Command) {
	e.scenarioFlags.register(cmd)
	names(cmd, &e.engine, "engine", sim.EngineNames()[:1], sim.EngineNames(), "engines that execute the plans, live with goroutines or timed in virtual nanoseconds: ")
	f := cmd.Flags()
	f.StringSliceVar(&e.calibration, "calibration", nil, "`list` of what everything takes: built-in machines (textpoke calibrate list) or files; without any, the timed engine counts and names no time")
	f.StringSliceVar(&e.calls, "calls", nil, "`list` of calls of traced functions a second on each busy CPU, in place of the calibration's")
	f.StringSliceVar(&e.entries, "entries", nil, "`list` of entries into the kernel a second of each isolated CPU, in place of the calibration's")
	f.BoolVar(&e.preempt, "preempt", false, "timed engine: tasks may be preempted inside tracers, and the patcher between two batches")
	f.BoolVar(&e.rate, "rate", false, "timed engine: fill in events_per_s, which is another number every time")
}

// timedFlags go with the timed engine alone.
var timedFlags = []string{"scenario", "calibration", "calls", "entries", "preempt", "rate"}

// read checks the flags and puts what they ask for into the grid.
func (e *engineFlags) read(cmd *cobra.Command, c *common, grid *sim.Grid) error {
	engines, err := namedList("engine", e.engine, sim.EngineNames(), sim.ParseEngine)
	if err != nil {
		return err
	}
	if !slices.Contains(engines, sim.TimedEngine) {
		for _, flag := range timedFlags {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s goes with --engine timed", flag)
			}
		}
	}
	if e.on(cmd) && slices.Contains(engines, sim.LiveEngine) {
		return fmt.Errorf("--scenario goes with --engine timed alone: the live engine changes nothing but records")
	}
	if cmd.Flags().Changed("calibration") {
		if grid.Calibrations, err = list("calibration", e.calibration, calibration.Open); err != nil {
			return err
		}
		c.calibrations = grid.Calibrations
	}
	for _, flag := range []struct {
		name   string
		values []string
		to     *[]float64
	}{{"calls", e.calls, &grid.Calls}, {"entries", e.entries, &grid.Entries}} {
		if cmd.Flags().Changed(flag.name) {
			if *flag.to, err = list(flag.name, flag.values, perSecond); err != nil {
				return err
			}
		}
	}
	grid.Engines, grid.Preempt = engines, e.preempt
	grid.Scenarios, err = e.scenarios()
	return err
}

// mostPerSecond bounds rates: nothing happens more often than once a nanosecond.
const mostPerSecond = 1e9

// perSecond is the parse of rates.
func perSecond(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > mostPerSecond {
		return 0, fmt.Errorf("%q: want a number a second, from 0 to %.0f", s, mostPerSecond)
	}
	return v, nil
}

// extrapolated warns of machines that are larger than those the costs are from.
func (c *common) extrapolated(configs []sim.Config) {
	said := map[string]bool{}
	for i := range configs {
		k := configs[i].Calibration
		if n := len(configs[i].Roles); k != nil && n > k.CPUs && !said[k.Name] {
			said[k.Name] = true
			c.logger().Warn("the calibration is of a smaller machine: what it says of a larger one is extrapolated",
				zap.String("calibration", k.Name), zap.Int("its_cpus", k.CPUs), zap.Int("cpus", n))
		}
	}
}

// printRanges says what is published about costs, where nobody has said which
// machine is meant.
func printRanges(w io.Writer, configs []sim.Config) {
	asked := slices.DeleteFunc(slices.Clone(configs), func(c sim.Config) bool { return c.Engine != sim.TimedEngine || c.Calibration != nil })
	if len(asked) == 0 {
		return
	}
	fmt.Fprint(w, "\nNo calibration, no times: name one with --calibration (textpoke calibrate list). What others have published:\n")
	for _, r := range calibration.Ranges() {
		fmt.Fprintf(w, "  %-36s %s  (%s)\n", r.Name, between(r.Low, r.High), strings.Join(r.Sources, "; "))
	}
	low, high := calibration.RoundRange()
	for i := range asked {
		if j, err := sim.NewJob(asked[i]); err == nil {
			if rounds := j.Rounds(); rounds > 0 {
				fmt.Fprintf(w, "%d rounds of that range are %s: %s\n", rounds, between(float64(rounds)*low, float64(rounds)*high), j)
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
