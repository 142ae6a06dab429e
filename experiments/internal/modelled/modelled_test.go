// SPDX-License-Identifier: Apache-2.0

package modelled

import (
	"math"
	"testing"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sim"
)

// TestKept: an update that was asked for is not run again, and whatever differs makes it another one.
func TestKept(t *testing.T) {
	m, err := experiments.ParseMachine("vm-2@4")
	if err != nil {
		t.Fatal(err)
	}
	lab := experiments.Lab{Seed: 1, Kept: experiments.Kept{}}
	enable := func(change func(*sim.Config)) *sim.Modelled {
		t.Helper()
		c, err := m.Job(t.Context(), lab, experiments.Ascending(20))
		if err != nil {
			t.Fatal(err)
		}
		c.Protocol, c.Refs = "breakpoint", int3.SharedRef
		change(&c)
		u, err := Enable(t.Context(), lab, c, math.MaxInt)
		if err != nil {
			t.Fatal(err)
		}
		return u.Modelled
	}
	first := enable(func(*sim.Config) {})
	if enable(func(*sim.Config) {}) != first {
		t.Error("the same was run again")
	}
	rate := 5.0
	for name, change := range map[string]func(*sim.Config){
		"seed":        func(c *sim.Config) { c.Seed = 2 },
		"out of turn": func(c *sim.Config) { c.OutOfTurn = 1 },
		"calls":       func(c *sim.Config) { c.Calls = &rate },
		"buffer":      func(c *sim.Config) { c.Buffer.Slots = 7 },
		"costs":       func(c *sim.Config) { c.Calibration = c.Calibration.At(calibration.Long) },
		"references":  func(c *sim.Config) { c.Refs = int3.PerCPU },
	} {
		if enable(change) == first {
			t.Errorf("another %s: the first one again", name)
		}
	}
	lab.Kept = nil
	if enable(func(*sim.Config) {}) == first {
		t.Error("a lab that keeps nothing has kept it")
	}
}
