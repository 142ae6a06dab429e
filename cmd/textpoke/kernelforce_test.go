// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/textpoke/textpoke/kernels/force"
)

// TestForced: the line above the runs and the exit code are one answer.
func TestForced(t *testing.T) {
	broke, outlived := force.Row{Outcome: force.Broke}, force.Row{Outcome: force.Outlived}
	stuck := force.Row{Outcome: force.NotForced, At: 3}
	alive := stuck
	alive.Alive = true
	for want, c := range map[string]struct {
		fixed bool
		rows  []force.Row
		exit  error
	}{
		"YES: in 2 of 2 runs the kernel broke as the case says":            {false, []force.Row{broke, broke}, nil},
		"YES: in 2 of 2 runs the kernel outlived it":                       {true, []force.Row{outlived, alive}, nil},
		"NO: run 2: the kernel outlived; it was to break as the case says": {false, []force.Row{broke, outlived}, errNo},
		"NO: run 1: the kernel broke; it was to outlive it":                {true, []force.Row{broke}, errNo},
		"INCOMPLETE: run 2 could not be forced at step 3":                  {false, []force.Row{broke, stuck}, errCut},
	} {
		f := forceFlags{fixed: c.fixed}
		if line, err := f.answer(c.rows); line != want || err != c.exit {
			t.Errorf("%s, %v; want %s, %v", line, err, want, c.exit)
		}
	}
}
