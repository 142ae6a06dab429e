// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/axis"
	"github.com/textpoke/textpoke/sim/hardware"
)

// Grid is the cross product of lists of choices: the combinations that are counted or
// run, the last axis changing fastest.
type Grid struct {
	*axis.Grid[Config]
	uses    uint
	choices axis.Choices
	options records.Options
}

// NewGrid reads choices for a use of the combinations: [UsePlan], or [UseLive] and [UseTimed],
// of which the axis engine chooses. A choice that the use does not know is an error. Errors
// about one value begin with its name.
func NewGrid(uses uint, choices axis.Choices, o records.Options) (*Grid, error) {
	choices, err := follow(choices)
	if err == nil {
		choices, err = here(choices)
	}
	if err != nil {
		return nil, err
	}
	axes := Axes.For(uses)
	if _, chosen := choices["buffer"]; !chosen && uses&UsePlan == 0 {
		// Without sizes in the request, a protocol without a buffer gets one row.
		axes.Named("buffer").Applies = (*Config).Queues
	}
	g := &Grid{uses: uses, choices: choices, options: o}
	if g.Grid, err = axes.Read(choices); err != nil {
		return nil, err
	}
	if uses&UsePlan != 0 {
		return g, nil // there are no other axes
	}
	inUse := choices["engine"]
	if inUse == nil {
		inUse = axes.Named("engine").Presets()
	}
	return g, g.Refuse(engines, inUse)
}

// engines are those that can execute a combination.
var engines = []axis.Engine{{Name: LiveEngine.String(), Uses: UseLive}, {Name: TimedEngine.String(), Uses: UseTimed},
	{Name: HardwareEngine.String(), Uses: UseHardware}}

// follow lets a scenario choose the open axes: a vector of one size, and its kernel's
// architecture and protocol.
func follow(choices axis.Choices) (axis.Choices, error) {
	scenario, kernel := choices["scenario"], choices["kernel"]
	if scenario == nil {
		return choices, nil
	}
	choices = maps.Clone(choices)
	if choices["buffer"] == nil {
		choices["buffer"] = Axes.Named("buffer").Presets()[:1]
	}
	if len(kernel) != 1 {
		return choices, nil // its axis says what is wrong
	}
	k, err := ledger.Open(kernel[0])
	if err != nil {
		return choices, nil
	}
	if arch, chosen := choices["arch"]; chosen && !slices.Equal(arch, []string{k.Arch}) {
		return nil, choice.Errorf("%s %s does not go with %s %s", choice.Name("kernel"), k.Name(), choice.Name("arch"),
			strings.Join(arch, ","))
	}
	choices["arch"] = []string{k.Arch}
	if choices["protocol"] == nil && choices["plan"] == nil {
		choices["protocol"] = []string{k.Protocol}
	}
	return choices, nil
}

// here lets the hardware engine choose what is left open: the instruction set and the
// CPUs of this machine.
func here(choices axis.Choices) (axis.Choices, error) {
	if !slices.Equal(choices["engine"], []string{HardwareEngine.String()}) {
		return choices, nil
	}
	choices = maps.Clone(choices)
	if choices["arch"] == nil {
		choices["arch"] = []string{live.Arch.Traits().Name}
	}
	if choices["cpus"] == nil {
		allowed, err := hardware.Allowed()
		if err != nil {
			return nil, err
		}
		choices["cpus"] = []string{fmt.Sprint(allowed)}
	}
	return choices, nil
}

// Definition is the protocol that compiles the combination's plans: the one from a file,
// or the built-in one of the name; nil without one.
func (c *Config) Definition() *poke.Protocol {
	if c.Plan != nil {
		return c.Plan
	}
	return poke.Named(c.Protocol, c.Arch.Traits())
}

// Queues tells whether the combination's patches are queued in a vector.
func (c *Config) Queues() bool {
	p := c.Definition()
	return p != nil && p.Batching == poke.Buffered
}

// anyArch tells whether no architecture is chosen: then those that do not fit the table are
// left out.
func (g *Grid) anyArch() bool { return g.choices["arch"] == nil }

// Points is how many combinations there are, before any table is opened: at most so
// many, as architectures that are left out show only in the tables.
func (g *Grid) Points() int {
	arches := g.choices["arch"]
	if arches == nil {
		arches = cpus.ArchNames()
	}
	sources, _ := splitSources(g.choices["records"])
	tables := len(arches)
	if len(sources) > 0 {
		tables = 0
		for _, arch := range arches {
			for _, src := range sources {
				if b, is := records.FindBuiltin(src); !g.anyArch() || !is || b.Arch == arch {
					tables++
				}
			}
		}
	}
	points := g.Grid.Points("arch", "records")
	if tables > 0 && points > math.MaxInt/tables {
		return math.MaxInt
	}
	return points * tables
}

// Combinations opens the tables, each once, and checks every combination before
// any is carried out, so that a wrong one costs nothing. It returns warnings about
// them for people, each once. Jobs are left for later, as the queue of each is as
// long as its table.
func (g *Grid) Combinations(ctx context.Context) (configs []Config, warnings []string, err error) {
	base := []Config{{Buffer: sched.Buffer{Slots: defaultSlots}}}
	configs, err = g.Cross(base, func(flag string, so []Config) ([]Config, error) {
		switch flag {
		case "records":
			return g.open(ctx, so)
		case "mutate":
			// Whether one can work depends only on the axes that have been multiplied so far.
			so, warnings, err = g.check(ctx, so)
			return so, err
		}
		return so, nil
	})
	return configs, warnings, err
}

// defaultSlots is how many slots a vector has unless a size is asked for: TP_VEC_MAX where an
// entry takes 16 bytes (arch/x86/kernel/alternative.c, 5.6 and later).
const defaultSlots = 256

// open opens the table of each combination.
func (g *Grid) open(ctx context.Context, configs []Config) (out []Config, err error) {
	tables := map[string]*records.Table{}
	for _, c := range configs {
		if own := g.ownTable(); own != nil {
			c.Table = own
			out = append(out, c)
			continue
		}
		arch := c.Arch.Traits().Name
		if c.source == "" && g.choices["records"] == nil {
			c.source = records.DefaultFor(arch)
		}
		opt, key := g.options, c.source
		if !g.anyArch() { // a list of functions has other addresses on each
			opt.Arch = arch
			key += "\x00" + arch
		}
		if tables[key] == nil {
			if tables[key], err = records.Open(ctx, c.source, opt); err != nil {
				return nil, err
			}
		}
		c.Table = tables[key]
		if of := c.Table.Arch(); !g.anyArch() || of == "" || of == arch {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no combination is left to do")
	}
	return out, nil
}

// ownTable is the records of the chosen kernel, if it is an image and no other table is
// named; nil otherwise.
func (g *Grid) ownTable() *records.Table {
	kernel := g.choices["kernel"]
	if len(kernel) != 1 || g.choices["records"] != nil {
		return nil
	}
	k, err := ledger.Open(kernel[0])
	if err != nil {
		return nil // its axis says so
	}
	return k.Own
}

// check finds out whether combinations can work at all. Engines need something to patch. It
// leaves out combinations whose protocol lacks the mutation if others have it.
func (g *Grid) check(ctx context.Context, configs []Config) (kept []Config, warnings []string, err error) {
	var passed poke.Passed
	for _, c := range configs {
		j, err := NewJob(c)
		if err == nil {
			err = j.check()
		}
		if err == nil && g.uses&useRun != 0 && len(j.queue) == 0 {
			err = j.nothing()
		}
		if err == nil {
			err = ctx.Err()
		}
		out, err := passed.Take(c.Mutation, err)
		if err != nil {
			return nil, nil, err
		}
		if out {
			continue
		}
		kept = append(kept, c)
		for _, w := range j.Warnings() {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	notes, err := passed.Notes()
	return kept, append(notes, warnings...), err
}
