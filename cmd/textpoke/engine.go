// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sim"
)

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
