// SPDX-License-Identifier: Apache-2.0

// Package directops asks what one ops for all direct trampolines changes, for a
// call and for attaching, and why the ops had the trampoline's address.
package directops

import (
	"cmp"
	"context"
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
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

// Experiment is the question.
var Experiment = experiments.New("directops/direct-ops.experiment", measure)

// counted are the kernels whose attaching is counted: both designs, and all instruction sets.
var counted = []string{"x86_64-6.12", "x86_64-7.2", "arm64-6.12", "riscv64-7.2"}

// row is the calls of one set-up: who is attached, and where trampolines lie.
type row struct {
	ISA         isa.Arch
	Trampolines int
	One         bool // ops for all trampolines; otherwise each has one
	Far         bool // trampolines are out of branch range
	Slow        bool // somebody traces all functions too
	InKernel    bool
	mean

	functions []records.Addr // those that a kernel's table begins with

	way  *dispatch.Way
	fast *row // the same calls on the fast path; nil of these
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	times, err := published.AttachTimes.Read(c.Published)
	if err != nil {
		return nil, err
	}
	kernels, err := spelling.ReadEach(counted, ledger.Named)
	if err != nil {
		return nil, err
	}
	attached, err := c.attach(kernels)
	if err != nil {
		return nil, err
	}
	rows, err := c.rows(ctx, kernels)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) { return r, r.count() })
	return s, cmp.Or(err, experiments.Beside(s, "attach", attached), experiments.Beside(s, "ops", published.TimesByOps(times)))
}

// rows are all set-ups that an instruction set can have: where sites do not name their ops, a trampoline out of range
// cannot be called at all.
func (c *Config) rows(ctx context.Context, kernels []*ledger.Kernel) (out []*row, err error) {
	for _, arch := range c.Arches {
		t, err := records.Open(ctx, records.DefaultFor(arch.Traits().Name), records.Options{})
		if err != nil {
			return nil, err
		}
		for _, one := range []bool{false, true} {
			known := slices.ContainsFunc(kernels, func(k *ledger.Kernel) bool {
				return k.Arch == arch.Traits().Name && k.SharedDirectOps() == one
			})
			for _, far := range []bool{false, true} {
				if far && !arch.Traits().CallOps {
					continue
				}
				for _, n := range c.Trampolines {
					fast := &row{ISA: arch, functions: t.Addrs()[:n], Trampolines: n, One: one, Far: far, InKernel: known}
					slow := *fast
					slow.Slow, slow.fast = true, fast
					out = append(out, fast, &slow)
				}
			}
		}
	}
	return out, nil
}

// mean is what a call takes, in the mean over functions.
type mean struct {
	Loads, Lookups, Entries float64
	Saves                   bool
}

// sampled is how many functions the mean is over, at most; they lie evenly among
// those that have a trampoline.
const sampled = 16

// count counts calls, on the slow path with somebody who traces all functions too.
func (r *row) count() (err error) {
	if r.Slow {
		r.way = r.fast.way
		err = r.way.Attach(tracers.NewOps("all", tracers.CountHits, 0))
	} else {
		err = r.attach()
	}
	if err != nil {
		return err
	}
	var sum dispatch.Counts
	task, take := &dispatch.Task{}, min(r.Trampolines, sampled)
	task.Count(&sum)
	for i := range take {
		r.way.Call(i*r.Trampolines/take, task)
	}
	if r.Slow && !r.ISA.Traits().CallOps {
		// The ways here load the site's literal and the ops that it names; a
		// kernel without literals loads function_trace_op instead.
		sum.Loads -= int64(take)
	}
	k := float64(take)
	r.mean = mean{float64(sum.Loads) / k, float64(sum.Hashes) / k, float64(sum.Walked) / k, sum.Saved > 0}
	return nil
}

// attach attaches a trampoline to each of the functions.
func (r *row) attach() error {
	ips := r.functions
	name := map[[2]bool]string{
		{}: "direct", {false, true}: "direct-ops", {true, false}: "single-direct", {true, true}: "single-direct-far"}
	kind, err := dispatch.Parse(name[[2]bool{r.One, r.Far}])
	if err != nil {
		return err
	}
	if r.way, err = kind.New(dispatch.Config{Sites: ips}); err != nil {
		return err
	}
	ops := []*tracers.Ops{tracers.NewOps("direct", nil, 0)}
	for i := range ips {
		if !r.One && i > 0 {
			ops = append(ops, tracers.NewOps("direct", nil, 0))
		}
		last := ops[len(ops)-1]
		last.Filter = append(last.Filter, i)
	}
	for _, o := range ops {
		o.Direct = tracers.CountHits
		err = cmp.Or(err, r.way.Attach(o))
	}
	return err
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
