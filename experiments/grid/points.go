// SPDX-License-Identifier: Apache-2.0

package grid

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// The axes that are not multiplied like others: tables and machines are opened first,
// files with plans stand beside the experiment's, and a limit is none of combinations.
const (
	archAxis        = "arch"
	recordsAxis     = "records"
	calibrationAxis = "calibration"
	planAxis        = "plan"
	limitAxis       = "limit-ipis"
	sitesAxis       = "sites"
	cpusAxis        = "cpus"
)

// ownTable is the table of the kernel that an instruction set comes with, and keep
// stands behind the values that a flag does not replace.
const (
	ownTable = "own"
	keep     = " + "
)

// Point is a combination with the labels of its line.
type Point struct {
	sim.Config
	Machine experiments.Machine // the zero value where times are not modelled
	labels  form.Row
}

// axesFor are those that combinations of a grid's mode can have. The size of a vector
// multiplies what is queued in one.
func axesFor(mode string) axis.Table[sim.Config] {
	all := sim.Axes.For(sim.UseLive | sim.UseTimed)
	if mode == "count" {
		all = sim.Axes.For(sim.UsePlan)
	}
	all = slices.DeleteFunc(all, func(a axis.Axis[sim.Config]) bool {
		return slices.Contains([]string{recordsAxis, calibrationAxis, planAxis, "seed"}, a.Name)
	})
	buffer := all.Named("buffer")
	buffer.Applies = (*sim.Config).Queues
	buffer.Default, _, _ = strings.Cut(buffer.Default, ",")
	return all
}

// known tells whether a name is that of an axis.
func (g *grid) known(name string) bool { return slices.Contains(g.names(), name) }

// names are those of all axes.
func (g *grid) names() []string {
	out := spelling.Each(g.axes, func(a axis.Axis[sim.Config]) string { return a.Name })
	out = append(out, recordsAxis, sitesAxis, planAxis)
	if g.form.Grid.Mode == "run" {
		out = append(out, calibrationAxis, limitAxis)
	}
	return out
}

// plan reads a protocol from a file beside the experiment's.
func (g *grid) plan(name string) (*poke.Protocol, error) {
	if g.more.Open == nil {
		return nil, fmt.Errorf("%s: no files come with this experiment", name)
	}
	src, err := g.more.Open(name)
	if err != nil {
		return nil, err
	}
	return poke.ParseProtocol(name, src)
}

// combinations are all points multiplied by all axes, in the order of the points.
func (g *grid) combinations(ctx context.Context, c *Config, seed uint64) (out []Point, err error) {
	d := g.form.Grid
	lines := d.Points
	if lines == nil {
		lines = []form.Point{{}}
	}
	open := &opener{ctx: ctx, kallsyms: c.Kallsyms, tables: map[string]*records.Table{}}
	for _, line := range lines {
		values, labels, fits := g.values(c, line)
		if !fits {
			continue
		}
		some, err := g.cross(open, c, values, labels)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no combination is left to do")
	}
	for i := range out {
		out[i].Seed = seed
		if _, err := sim.NewJob(out[i].Config); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// values are those of the axes for a line of the points. The line does not fit where the
// flag of an axis has left its value out.
func (g *grid) values(c *Config, line form.Point) (values map[string]string, labels form.Row, fits bool) {
	values, labels = map[string]string{}, form.Row{}
	for _, a := range g.form.Grid.Axes {
		text := *c.Values[a.Name]
		if kept, _, some := strings.Cut(a.Values, keep); some && a.Name != recordsAxis {
			text = kept + "," + text
		}
		values[a.Name] = text
	}
	for i, text := range line.Values {
		name := g.form.Grid.Labels[i]
		if !g.known(name) {
			if labels[name] = nil; text != "" {
				labels[name] = text
			}
			continue
		}
		if a := g.form.Grid.Axis(name); a != nil && text != "" && name == archAxis &&
			!slices.Contains(strings.Split(values[name], ","), text) {
			return nil, nil, false
		}
		if text != "" {
			values[name] = text
		}
	}
	return values, labels, true
}

// cross multiplies the values of a line.
func (g *grid) cross(open *opener, c *Config, values map[string]string, labels form.Row) (out []Point, err error) {
	bases, err := g.bases(open, c, values)
	if err != nil || len(bases) == 0 {
		return nil, err
	}
	choices := axis.Choices{}
	axes := slices.DeleteFunc(slices.Clone(g.axes), func(a axis.Axis[sim.Config]) bool {
		return a.Name == archAxis || a.Name == cpusAxis && values[cpusAxis] == "" && g.machines(c, values) != nil
	})
	for i := range axes {
		if text := values[axes[i].Name]; text != "" {
			choices[axes[i].Name] = []string{text}
			if axes[i].Split == nil {
				choices[axes[i].Name] = strings.Split(text, ",")
			}
		}
	}
	if bases[0].Calibration != nil {
		choices["engine"] = []string{sim.TimedEngine.String()}
	}
	if values[planAxis] != "" {
		axes = slices.DeleteFunc(axes, func(a axis.Axis[sim.Config]) bool { return a.Name == "protocol" })
	}
	multiplied, err := axes.Read(choices)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		so, err := multiplied.Cross([]sim.Config{b.Config}, func(_ string, so []sim.Config) ([]sim.Config, error) { return so, nil })
		if err != nil {
			return nil, err
		}
		for _, cfg := range so {
			out = append(out, Point{cfg, b.Machine, labels})
		}
	}
	return out, nil
}

// bases are the machines, or the instruction sets, with their tables and plans.
func (g *grid) bases(open *opener, c *Config, values map[string]string) (out []Point, err error) {
	base := Point{}
	if name := values[planAxis]; name != "" {
		if base.Plan, err = g.plan(name); err != nil {
			return nil, err
		}
		base.Protocol = base.Plan.Name
	}
	sources, kept := g.sources(c, values)
	var bases []Point
	machines := g.machines(c, values)
	for _, m := range machines {
		b := base
		b.Machine, b.Calibration, b.Roles = m, m.Calibration, m.Shielded()
		if b.Arch, err = m.ISA(); err != nil {
			return nil, err
		}
		bases = append(bases, b)
	}
	if machines == nil {
		if values[archAxis] == "" {
			return open.with(base, sources, kept)
		}
		for name := range strings.SplitSeq(values[archAxis], ",") {
			b := base
			if b.Arch, err = cpus.ParseArch(name); err != nil {
				return nil, err
			}
			bases = append(bases, b)
		}
	}
	for _, b := range bases {
		some, err := open.with(b, sources, kept || len(sources) == 0)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// machines are the calibrations; nil where the grid names none.
func (g *grid) machines(c *Config, values map[string]string) []experiments.Machine {
	if c.Machines != nil || values[calibrationAxis] == "" {
		return c.Machines
	}
	var fixed []experiments.Machine
	_ = experiments.Machines(&fixed, "").Set(values[calibrationAxis]) // check has read it
	return fixed
}

// sources are the tables, and whether each instruction set's own is among them.
func (g *grid) sources(c *Config, values map[string]string) (sources []string, own bool) {
	text := values[recordsAxis]
	if a := g.form.Grid.Axis(recordsAxis); a != nil {
		if kept, rest, some := strings.Cut(a.Values, keep); some {
			own = kept == ownTable
			if text == a.Values {
				text = rest
			}
		}
	}
	for _, n := range c.Sites {
		sources = append(sources, experiments.Ascending(n))
	}
	if len(c.Records) > 0 || sources != nil {
		return append(sources, c.Records...), own
	}
	sources = strings.Fields(text)
	if slices.Contains(sources, "kernels") {
		var all []string
		for _, s := range sources {
			if s != "kernels" {
				all = append(all, s)
				continue
			}
			all = append(all, records.BuiltinNames()...)
		}
		sources = all
	}
	return sources, own
}

// opener opens each table once.
type opener struct {
	ctx      context.Context
	kallsyms string
	tables   map[string]*records.Table
}

// with are a base with each of the tables that go with its instruction set; own adds the
// one that it comes with. Without an instruction set each table has its own.
func (o *opener) with(base Point, sources []string, own bool) (out []Point, err error) {
	if own {
		sources = append([]string{records.DefaultFor(base.Arch.Traits().Name)}, sources...)
	}
	for _, name := range sources {
		b := base
		if b.Table, err = o.open(name); err != nil {
			return nil, err
		}
		of := b.Table.Arch()
		switch {
		case b.Arch == nil:
			if of == "" {
				of = cpus.ArchNames()[0]
			}
			if b.Arch, err = cpus.ParseArch(of); err != nil {
				return nil, err
			}
		case of != "" && of != b.Arch.Traits().Name && b.Calibration == nil: // a machine cannot do without
			continue
		}
		out = append(out, b)
	}
	return out, nil
}

func (o *opener) open(name string) (t *records.Table, err error) {
	if o.tables[name] == nil {
		opt := records.Options{Kallsyms: o.kallsyms}
		if o.tables[name], err = records.Open(o.ctx, name, opt); err != nil {
			return nil, err
		}
	}
	return o.tables[name], nil
}
