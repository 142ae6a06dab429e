package sim

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Grid is lists of choices; their cross product is the combinations that are
// counted or run, the last list changing fastest.
type Grid struct {
	Records   []string // as records.Open wants them; none: each architecture's own kernel
	Arches    []isa.Arch
	Layouts   []string
	AnyArch   bool // Arches is a default: leave out what a table is not of
	Protocols []string
	Plans     []*poke.Protocol // from files, in place of Protocols
	Mutations []string         // "" for none
	Buffers   []sched.Buffer
	Orders    []sched.Ordering
	Lookups   []int3.Kind
	Refs      []int3.Refs
	Fetches   []cpus.Fetch
	Machines  [][]cpus.Role
	Engines   []Kind
	Dispatch  []dispatch.Kind // ways from sites to Tracers; none: tracers are not told apart
	Tracers   Tracers         // how many

	// For the timed engine alone: several machines are told apart by their
	// architecture, and each combination has those of its own.
	Calibrations   []*calibration.Calibration
	Calls, Entries []float64 // a second; none: the calibration's
	Preempt        bool
	Scenarios      []Scenario // with no Kernel: the one that an architecture stands for

	Options records.Options
	Filters []records.Filter // none: every record
	Seeds   []uint64         // none: seed 0
	Migrate bool
}

// Points is how many combinations there are, before any table is opened: at most
// so many, as what AnyArch leaves out shows only in the tables.
func (g *Grid) Points() int {
	tables := len(g.Arches)
	if len(g.Records) > 0 {
		tables = 0
		for _, arch := range g.Arches {
			for _, src := range g.Records {
				if of := builtinArch(src); !g.AnyArch || of == "" || of == arch.Traits().Name {
					tables++
				}
			}
		}
	}
	points, protocols := tables, len(g.Protocols)
	if len(g.Plans) > 0 {
		protocols = len(g.Plans)
	}
	for _, n := range []int{
		len(g.Filters), protocols, len(g.Layouts), len(g.Mutations), len(g.Orders), len(g.Machines),
		len(g.Fetches), len(g.Lookups), len(g.Refs), len(g.Buffers), len(g.Seeds),
		len(g.Scenarios), len(g.Dispatch), len(g.Engines), len(g.Calibrations), len(g.Calls), len(g.Entries),
	} {
		if n = max(n, 1); points > math.MaxInt/n {
			return math.MaxInt
		}
		points *= n
	}
	return points
}

// builtinArch is the architecture of a built-in table, "" for what is none.
func builtinArch(src string) string {
	for _, b := range records.Builtins() {
		if b.Name == src {
			return b.Arch
		}
	}
	return ""
}

// Combinations opens the tables, each once, and checks every combination before
// any is carried out, so that a wrong one costs nothing. What a person should
// know of them first comes back as warnings, each once. Jobs are left for later,
// as the queue of each is as long as its table.
func (g *Grid) Combinations(ctx context.Context) (configs []Config, warnings []string, err error) {
	tables := map[string]*records.Table{}
	open := func(src, arch string) (*records.Table, error) {
		opt, key := g.Options, src
		if !g.AnyArch { // a list of functions has other addresses on each
			opt.Arch = arch
			key += "\x00" + arch
		}
		if tables[key] == nil {
			t, err := records.Open(ctx, src, opt)
			if err != nil {
				return nil, err
			}
			tables[key] = t
		}
		return tables[key], nil
	}
	for _, arch := range g.Arches {
		sources := g.Records
		if len(sources) == 0 {
			sources = []string{records.DefaultFor(arch.Traits().Name)}
		}
		for _, src := range sources {
			t, err := open(src, arch.Traits().Name)
			if err != nil {
				return nil, nil, err
			}
			if g.AnyArch && t.Arch() != "" && t.Arch() != arch.Traits().Name {
				continue
			}
			more, warned, err := g.expand(ctx, arch, t)
			if err != nil {
				return nil, nil, err
			}
			configs = append(configs, more...)
			for _, w := range warned {
				if !slices.Contains(warnings, w) {
					warnings = append(warnings, w)
				}
			}
		}
	}
	if len(configs) == 0 {
		return nil, nil, fmt.Errorf("no combination is left to do")
	}
	return configs, warnings, nil
}

// expand makes the combinations of one architecture and table. Whether one can
// work depends on its filter, its protocol and its defect alone: the others are
// multiplied in behind the check.
func (g *Grid) expand(ctx context.Context, arch isa.Arch, t *records.Table) (base []Config, warnings []string, err error) {
	base = []Config{{Arch: arch, Table: t, Migrate: g.Migrate, Calls: -1, Entries: -1, Preempt: g.Preempt}}
	base = Cross(base, g.Filters, func(c *Config, v records.Filter) { c.Filter = v })
	if len(g.Plans) > 0 {
		base = Cross(base, g.Plans, func(c *Config, v *poke.Protocol) { c.Plan, c.Protocol = v, v.Name })
	} else {
		base = Cross(base, g.Protocols, func(c *Config, v string) { c.Protocol = v })
	}
	base = Cross(base, g.Layouts, func(c *Config, v string) { c.Layout = v })
	base = Cross(base, g.Mutations, func(c *Config, v string) { c.Mutation = v })
	for _, c := range base {
		j, err := NewJob(c)
		if err == nil {
			err = j.check()
		}
		if err == nil && len(g.Engines) > 0 && len(j.queue) == 0 {
			err = j.nothing()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, j.Warnings()...)
	}
	base = Cross(base, g.Orders, func(c *Config, v sched.Ordering) { c.Order = v })
	base = Cross(base, g.Machines, func(c *Config, v []cpus.Role) { c.Roles = v })
	base = Cross(base, g.Fetches, func(c *Config, v cpus.Fetch) { c.Fetch = v })
	base = Cross(base, g.Lookups, func(c *Config, v int3.Kind) { c.Lookup = v })
	base = Cross(base, g.Refs, func(c *Config, v int3.Refs) { c.Refs = v })
	base = Cross(base, g.Buffers, func(c *Config, v sched.Buffer) { c.Buffer = v })
	base = Cross(base, g.Scenarios, func(c *Config, s Scenario) {
		if s.Kernel == nil {
			s.Kernel = ledger.For(arch.Traits().Name)
		}
		c.Scenario = &s
	})
	base = Cross(base, g.Dispatch, func(c *Config, k dispatch.Kind) {
		c.Tracers = &Tracers{k, g.Tracers.Relevant, g.Tracers.Irrelevant}
	})
	base = Cross(base, g.Seeds, func(c *Config, v uint64) { c.Seed = v })
	base, err = g.engines(base)
	return base, warnings, err
}

// engines multiplies combinations by the engines that are to execute them. What is
// for the timed engine alone makes no difference to the others.
func (g *Grid) engines(base []Config) (out []Config, err error) {
	base = Cross(base, g.Engines, func(c *Config, k Kind) { c.Engine = k })
	for _, c := range base {
		one := []Config{c}
		if c.Engine == TimedEngine {
			if one, err = g.calibrate(one); err != nil {
				return nil, err
			}
		}
		out = append(out, one...)
	}
	return out, nil
}

func (g *Grid) calibrate(one []Config) ([]Config, error) {
	arch := one[0].Arch.Traits().Name
	var fit []*calibration.Calibration
	for _, k := range g.Calibrations {
		if k.Arch == arch {
			fit = append(fit, k)
		}
	}
	if len(g.Calibrations) > 0 && len(fit) == 0 {
		return nil, fmt.Errorf("calibration %s is of a machine of %s: what an update takes on %s it does not say", g.Calibrations[0].Name, g.Calibrations[0].Arch, arch)
	}
	one = Cross(one, fit, func(c *Config, k *calibration.Calibration) { c.Calibration = k })
	one = Cross(one, g.Calls, func(c *Config, rate float64) { c.Calls = rate })
	return Cross(one, g.Entries, func(c *Config, rate float64) { c.Entries = rate }), nil
}

// Cross multiplies combinations by the values of one more list; an empty list
// leaves them as they are.
func Cross[C, T any](base []C, values []T, set func(*C, T)) []C {
	if len(values) == 0 {
		return base
	}
	out := make([]C, 0, len(base)*len(values))
	for _, c := range base {
		for _, v := range values {
			set(&c, v)
			out = append(out, c)
		}
	}
	return out
}
