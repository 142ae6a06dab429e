package directops

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
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
func (s setup) place() string { return choose(s.far, "far", "near") }
func (s setup) path() string  { return choose(s.slow, "slow", "fast") }

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
	loads, lookups, entries float64
	saves                   bool
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

// gather attaches a trampoline to each of these functions. Of those with an ops each no more are sites than are looked
// at: the others' ops are on the list all the same.
func gather(arch isa.Arch, s setup, ips []records.Addr) (*crowd, error) {
	c := &crowd{arch: arch}
	var sites []records.Addr
	n := len(ips)
	take := min(n, sampled)
	for i := range take {
		sites, c.at = append(sites, ips[i*n/take]), append(c.at, i)
	}
	if s.one {
		for i := range c.at {
			c.at[i] = i * n / take
		}
		c.way = dispatch.NewSingleDirect(ips, dispatch.Transition, !s.far)
		return c, c.way.Attach(&dispatch.Ops{Func: dispatch.Hit, Filter: dispatch.NewHash(ips...), Direct: true})
	}
	c.way = dispatch.NewCallOps(sites, dispatch.Transition, !s.far)
	for _, ip := range ips {
		if err := c.way.Attach(&dispatch.Ops{Func: dispatch.Hit, Filter: dispatch.NewHash(ip), Direct: true}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// traceAll lets somebody trace all functions too.
func (c *crowd) traceAll() error { return c.way.Attach(&dispatch.Ops{Func: dispatch.Hit}) }

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
