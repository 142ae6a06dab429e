// SPDX-License-Identifier: Apache-2.0

// Package directops asks what one ops for all direct trampolines changes, for a
// call and for attaching, and what the trampoline's address in the ops was for.
package directops

import (
	"cmp"
	"context"
	_ "embed"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Config says which trampolines are called and attached.
// Its fields are the flags of direct-ops.experiment.
type Config struct {
	Arches      []isa.Arch
	Trampolines []int
	Published   string
}

//go:embed direct-ops.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{Form: declared, Measure: measure}).Experiment()

// counted are the kernels whose attaching is counted: both designs, and all instruction sets.
var counted = []string{"x86_64-6.12", "x86_64-7.2", "arm64-6.12", "riscv64-7.2"}

// row is the calls of one set-up.
type row struct {
	arch isa.Arch
	setup
	Trampolines int
	InKernel    bool
	mean
}

// Arch is the instruction set's name.
func (r *row) Arch() string { return r.arch.Traits().Name }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	times, err := published.AttachTimes.Read(c.Published)
	if err != nil {
		return nil, err
	}
	var kernels []*ledger.Kernel
	for _, name := range counted {
		k, err := ledger.Named(name)
		if err != nil {
			return nil, err
		}
		kernels = append(kernels, k)
	}
	attached, err := c.attach(kernels)
	if err != nil {
		return nil, err
	}
	err = cmp.Or(experiments.Beside(s, "attach", attached), experiments.Beside(s, "ops", published.TimesByOps(times)))
	if err != nil {
		return nil, err
	}
	for _, arch := range c.Arches {
		s.Asked += 2 * len(setups(arch)) * len(c.Trampolines)
	}
	err = c.calls(ctx, s, kernels)
	return s, cmp.Or(err, experiments.Beside(s, "pairs", pairs(s.Rows)))
}

// calls counts all calls that there are to count.
func (c *Config) calls(ctx context.Context, s *experiments.Study[Config, *row], kernels []*ledger.Kernel) error {
	for _, arch := range c.Arches {
		t, err := records.Open(ctx, records.DefaultFor(arch.Traits().Name), records.Options{})
		if err != nil {
			return err
		}
		for _, paths := range setups(arch) {
			for _, n := range c.Trampolines {
				r := row{arch: arch, Trampolines: n, InKernel: has(kernels, arch, paths[0])}
				if err := count(ctx, s, paths, t.Addrs()[:n], r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// count counts the fast path and then the slow one of trampolines of these functions.
func count(ctx context.Context, s *experiments.Study[Config, *row], paths [2]setup, ips []records.Addr, r row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := gather(r.arch, paths[0], ips)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if p.slow {
			if err := c.traceAll(); err != nil {
				return err
			}
		}
		done := r
		done.setup, done.mean = p, c.calls(p.slow)
		if err := s.Add(&done); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether a kernel does it so: all that are known have one or the other.
func has(kernels []*ledger.Kernel, arch isa.Arch, s setup) bool {
	for _, k := range kernels {
		if k.Arch == arch.Traits().Name && k.SharedDirectOps() == s.one {
			return true
		}
	}
	return false
}

// setup is who is attached, and where trampolines lie.
type setup struct {
	one  bool // ops for all trampolines; otherwise each has one
	far  bool // trampolines are out of branch range
	slow bool // somebody traces all functions too
}

func choose(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func (s setup) Ops() string   { return choose(s.one, "one", "each") }
func (s setup) Place() string { return choose(s.far, "far", "near") }
func (s setup) Path() string  { return choose(s.slow, "slow", "fast") }

// setups are those that an instruction set can have, those of the slow path after
// the same of the fast one: where sites do not name their ops, a trampoline out of
// range cannot be called at all.
func setups(arch isa.Arch) (out [][2]setup) {
	for _, one := range []bool{false, true} {
		for _, far := range []bool{false, true} {
			if !far || arch.Traits().CallOps {
				out = append(out, [2]setup{{one, far, false}, {one, far, true}})
			}
		}
	}
	return out
}

// mean is what a call takes, in the mean over functions.
type mean struct {
	Loads, Lookups, Entries float64
	Saves                   bool
}

// sampled is how many functions the mean is over, at most; they lie evenly among
// those that have a trampoline.
const sampled = 16

// crowd is the functions that have a trampoline each.
type crowd struct {
	arch isa.Arch
	way  *dispatch.Way
	at   []int // sites of the way that are looked at
}

// gather attaches a trampoline to each of these functions.
func gather(arch isa.Arch, s setup, ips []records.Addr) (c *crowd, err error) {
	c = &crowd{arch: arch}
	n := len(ips)
	take := min(n, sampled)
	for i := range take {
		c.at = append(c.at, i*n/take)
	}
	names := map[setup]string{{}: "direct", {far: true}: "direct-ops", {one: true}: "single-direct",
		{far: true, one: true}: "single-direct-far"}
	kind, err := dispatch.Parse(names[setup{far: s.far, one: s.one}])
	if err == nil {
		c.way, err = kind.New(dispatch.Config{Sites: ips})
	}
	if err != nil {
		return nil, err
	}
	if s.one {
		o := direct()
		for i := range ips {
			o.Filter = append(o.Filter, i)
		}
		return c, c.way.Attach(o)
	}
	for i := range ips {
		if err := c.way.Attach(direct(i)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// direct is an ops with a direct trampoline.
func direct(functions ...int) *tracers.Ops {
	o := tracers.NewOps("direct", nil, 0, functions...)
	o.Direct = tracers.CountHits
	return o
}

// traceAll lets somebody trace all functions too.
func (c *crowd) traceAll() error { return c.way.Attach(tracers.NewOps("all", tracers.CountHits, 0)) }

// calls counts what a call takes.
func (c *crowd) calls(slow bool) mean {
	var sum dispatch.Counts
	task := &dispatch.Task{}
	task.Count(&sum)
	for _, site := range c.at {
		c.way.Call(site, task)
	}
	if slow && !c.arch.Traits().CallOps {
		// The ways here load the site's literal and the ops that it names; a
		// kernel without literals loads function_trace_op instead.
		sum.Loads -= int64(len(c.at))
	}
	k := float64(len(c.at))
	return mean{float64(sum.Loads) / k, float64(sum.Hashes) / k, float64(sum.Walked) / k, sum.Saved > 0}
}

// nearTo is how many CPUs the machine should have that times are modelled for.
const nearTo = 64

// attachRow is attaching a trampoline to each of some functions, and detaching
// them.
type attachRow struct {
	Kernel      *ledger.Kernel
	Way         ledger.Way
	Functions   int
	On, Off     ledger.Tally
	OnNS, OffNS calibration.Spread
	Machine     string
}

// seed is of the draws that ranges are made of.
const seed = 1

// attach counts it for every kernel of the instruction sets that are asked for.
func (c *Config) attach(kernels []*ledger.Kernel) (out []*attachRow, err error) {
	for _, arch := range c.Arches {
		own := arch.Traits().Name
		m := ledger.NewMachine(calibration.Nearest(own, nearTo), ledger.AssumedExtra)
		for _, k := range kernels {
			if k.Arch != own {
				continue
			}
			for _, name := range []string{"fentry", "tracing-multi"} {
				w, err := ledger.ParseWay(name)
				if err != nil {
					return nil, err
				}
				if w.In(k) != nil {
					continue
				}
				for _, n := range c.Trampolines {
					row := &attachRow{Kernel: k, Way: w, Functions: n, Machine: m.Name}
					if row.On, row.Off, err = k.Attach(w, n, tableRecords); err != nil {
						return nil, err
					}
					row.OnNS, row.OffNS = m.Spread(&row.On, true, seed), m.Spread(&row.Off, false, seed)
					out = append(out, row)
				}
			}
		}
	}
	return out, nil
}

// tableRecords is how many functions the table has.
const tableRecords = 50000

// Copied is the entries of hashes that attaching and detaching copy.
func (r *attachRow) Copied() int { return r.On.Copied + r.Off.Copied }

// pair is the same calls with an ops each and with one for all.
type pair struct{ Each, One *row }

// pairs are those with the most trampolines, in the order of rows.
func pairs(rows []*row) (out []pair) {
	most := 0
	for _, r := range rows {
		most = max(most, r.Trampolines)
	}
	for _, each := range rows {
		want := each.setup
		want.one = true
		one := experiments.First(rows, func(r *row) bool {
			return r.arch == each.arch && r.setup == want && r.Trampolines == most
		})
		if !each.setup.one && each.Trampolines == most && one != nil {
			out = append(out, pair{each, one})
		}
	}
	return out
}
