// SPDX-License-Identifier: Apache-2.0

package directops

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

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

func (s setup) ops() string   { return choose(s.one, "one", "each") }
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
	way  dispatch.Way
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
	if s.one {
		if c.way, err = dispatch.NewSingleDirect(dispatch.Config{Sites: ips}, !s.far); err != nil {
			return nil, err
		}
		o := direct()
		for i := range ips {
			o.Filter = append(o.Filter, i)
		}
		return c, c.way.Attach(o)
	}
	if c.way, err = dispatch.NewCallOps(dispatch.Config{Sites: ips}, !s.far); err != nil {
		return nil, err
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
	for _, site := range c.at {
		sum = sum.Add(c.way.Cost(site))
	}
	if slow && !c.arch.Traits().CallOps {
		// The ways here load the site's literal and the ops that it names; a
		// kernel without literals loads function_trace_op instead.
		sum.Loads -= int64(len(c.at))
	}
	k := float64(len(c.at))
	return mean{float64(sum.Loads) / k, float64(sum.Hashes) / k, float64(sum.Walked) / k, sum.Saved > 0}
}
