package modelled

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Setting is what can be said of updates that try vectors out on some machines.
type Setting struct {
	Machines []experiments.Calibrated
	Buffers  []sched.Buffer
	Limit    int // for Enable

	roles   []cpus.Role // none: a quarter of each machine's are isolated
	records string      // "": the kernel of the calibration's instruction set
	calls   float64     // below 0: the calibration's
}

// Register registers the flags.
func (s *Setting) Register(f *pflag.FlagSet, machines, buffers string) {
	experiments.Calibrations(f, &s.Machines, machines)
	experiments.Buffers(f, &s.Buffers, buffers)
	f.Var(experiments.NewRoles(&s.roles), "cpus", "`machine` in place of the calibrations' own, of which a quarter is isolated: a number of CPUs, or roles (busy, idle, isolated, irqsoff, offline)")
	f.StringVar(&s.records, "records", "", "`table` of records: a built-in one, a file or gen:... (default: the kernel of the calibration's instruction set)")
	s.calls = -1
	experiments.Rate(f, &s.calls, "calls", "calls of traced functions a second on a busy CPU (default: the calibration's)")
	f.IntVar(&s.Limit, "limit-ipis", 10_000_000, "what takes more `interrupts` than that, of all CPUs together, is counted and not timed")
}

// Config is what all updates on one machine have in common.
func (s *Setting) Config(ctx context.Context, lab *experiments.Lab, m experiments.Calibrated) (c sim.Config, err error) {
	c = sim.Config{
		Lookup: int3.Vector, Roles: s.roles, Seed: lab.Seed,
		Calibration: m.Calibration, Calls: s.calls, Entries: -1,
	}
	if c.Roles == nil {
		c.Roles = m.Shielded()
	}
	if c.Arch, err = m.ISA(); err != nil {
		return c, err
	}
	source := s.records
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
	if s.roles != nil {
		line += "; CPUs " + cpus.FormatRoles(s.roles)
	}
	return line
}
