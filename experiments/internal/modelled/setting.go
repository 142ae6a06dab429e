// SPDX-License-Identifier: Apache-2.0

package modelled

import (
	"context"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Setting is what can be said of updates that try vectors out on some machines.
type Setting struct {
	Machines []experiments.Machine
	Buffers  []sched.Buffer
	Limit    int         // of interrupts, above which an update is counted and not timed
	Roles    []cpus.Role // nil for those of the machine
	Records  string      // "" for the kernel of the machine's instruction set
	Calls    *float64    // nil for those of the calibration
}

// Engine is what all updates on one machine have in common.
func (s *Setting) Engine(ctx context.Context, lab experiments.Lab, m experiments.Machine) (c sim.Config, err error) {
	c = sim.Config{
		Lookup: int3.Vector, Roles: s.Roles, Seed: lab.Seed,
		Calibration: m.Calibration, Calls: s.Calls,
	}
	if c.Roles == nil {
		c.Roles = m.Shielded()
	}
	if c.Arch, err = m.ISA(); err != nil {
		return c, err
	}
	source := s.Records
	if source == "" {
		source = records.DefaultFor(m.Arch)
	}
	c.Table, err = records.Open(ctx, source, records.Options{})
	return c, err
}

// Says names the machines, for people who see a picture alone.
func (s *Setting) Says() string {
	line := "Modelled by the timed engine. Calibrations"
	for i, m := range s.Machines {
		if i > 0 {
			line += ","
		}
		line += " " + m.String()
	}
	if s.Roles != nil {
		line += "; CPUs " + cpus.FormatRoles(s.Roles)
	}
	return line
}
