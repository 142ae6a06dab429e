// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// TestCatchingUpIsStolen: what an isolated CPU takes to make up for rounds that left it
// out is taken from it, and where interrupts take nothing it is all that is.
func TestCatchingUpIsStolen(t *testing.T) {
	const catchUp = 12_345
	k := calibration.Costs{CatchUp: catchUp, Entries: 1e6, KernelStretch: 100, Store: 600, TickInterval: 4e6}
	r := newRig(t, plain("x86_64", "breakpoint-lazy", 100, "busy=1,isolated=3", k))
	r.toggle()
	for cpu, role := range r.cfg.Roles {
		l := r.Life(cpu)
		if isolated := role == cpus.Isolated; l.Stolen != Nanos(l.CaughtUp)*catchUp || isolated != (l.CaughtUp > 0) {
			t.Errorf("CPU %d: %d ns stolen, %d times made up for %d ns", cpu, l.Stolen, l.CaughtUp, catchUp)
		}
	}
}
