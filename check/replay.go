// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timed"
)

// Replay forces a trace on an engine; see explore.Replay and ReplayTimed.
func Replay(engine sim.EngineKind, m *explore.Model, t *explore.Trace) (*cpus.Violation, error) {
	if engine == sim.TimedEngine {
		return ReplayTimed(m, t)
	}
	return explore.Replay(m, t)
}

// ReplayTimed forces a trace on the timed engine, one step at a time as the trace says,
// and comes to the same violation; see explore.Replay. Errors also say what the timed
// engine cannot express.
func ReplayTimed(m *explore.Model, t *explore.Trace) (*cpus.Violation, error) {
	if n := len(m.Programs); n > 1 {
		return nil, fmt.Errorf("the timed engine has one patcher, the trace has %d", n)
	}
	machine, err := timed.NewLockstep(timed.Config{
		Code: m.Code, Roles: m.Roles, Lookup: m.Lookup, Refs: m.Refs,
		NopOps: m.NopOps, Initial: func(site int) isa.Text { return m.Initial[site] },
		Slots: m.Slots, Filling: m.Filling,
	})
	if err != nil {
		return nil, err
	}
	if err := m.Furnish(machine); err != nil {
		return nil, err
	}
	return explore.ReplayOn(m, t, machine)
}
