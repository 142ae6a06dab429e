// SPDX-License-Identifier: Apache-2.0

package modelled

import (
	"context"
	"math"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Setting is what can be said of updates that try vectors out on some machines.
type Setting struct {
	// Machines are the calibrations that times are modelled of.
	Machines []experiments.Machine
	// Buffers are the sizes of the vector, in slots.
	Buffers []sched.Buffer
	// Limit is the number of interrupts, of all CPUs together, above which an update is
	// counted and not timed. Default: 10,000,000.
	Limit int
	// Roles are the CPUs of each machine. Default: the calibration's number of CPUs, of
	// which a quarter is isolated.
	Roles []cpus.Role
	// Records is the table of records. Default: the kernel of the calibration's
	// instruction set.
	Records string
	// Calls is how often a busy CPU calls traced functions, a second. Default: what the
	// calibration says.
	Calls *float64
}

// Fields are the fields, with the default machines and sizes of an experiment.
func (s *Setting) Fields(machines, buffers string) []*experiments.Field {
	return []*experiments.Field{
		experiments.Machines(&s.Machines, machines),
		experiments.Buffers(&s.Buffers, buffers),
		experiments.Roles(&s.Roles, "", "`machine` in place of the calibrations' own, of which a quarter is isolated"),
		experiments.Records(&s.Records, "",
			"`table` of records: a built-in one, a file or gen:... (default: the kernel of the calibration's instruction set)"),
		experiments.Rate(&s.Calls, "calls", "calls of traced functions a second on a busy CPU (default: the calibration's)"),
		experiments.Count(&s.Limit, "limit-ipis", 10_000_000,
			"what takes more `interrupts` than that, of all CPUs together, is counted and not timed", 0, math.MaxInt),
	}
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
