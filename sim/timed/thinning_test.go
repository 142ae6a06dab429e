// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// thinningCases are small machines whose calls meet breakpoints, stale text and
// nothing at all.
func thinningCases() (out []rigged) {
	k := plainCosts()
	k.Calls, k.FetchLag = 2e6, 20_000
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "breakpoint", "breakpoint-lazy"} {
			out = append(out, plain(arch, protocol, 60, "busy=4,irqsoff=1,idle=1,isolated=1", k))
			out[len(out)-1].Slots = 16
		}
	}
	return out
}

// TestThinning: calls that are left out change nothing. One machine executes every
// call, the other one draws the same calls and executes only the hot ones: they must
// do the same to the last nanosecond and the last call.
func TestThinning(t *testing.T) {
	for _, c := range thinningCases() {
		for seed := range uint64(20) {
			c.Seed = seed
			c.Preempt = seed%2 == 1
			c.Refs = []int3.Refs{int3.PerCPU, int3.SharedRef}[seed/2%2]
			c.Calls = Every
			every := newRig(t, c).toggle()
			c.Calls = EverySkip
			skip := newRig(t, c).toggle()
			for i := range every {
				every[i].Events, skip[i].Events = 0, 0
			}
			if diff := cmp.Diff(every, skip); diff != "" {
				t.Fatalf("%s %s, seed %d: %s", c.arch, c.protocol, seed, diff)
			}
		}
	}
}

// thinned are the numbers that both ways of drawing calls must spread alike.
var thinned = []struct {
	name string
	of   func(o *Outcome, sum cpus.Tally) float64
}{
	{"traps", func(_ *Outcome, sum cpus.Tally) float64 { return float64(sum[cpus.Trap]) }},
	{"calls", func(_ *Outcome, sum cpus.Tally) float64 { return float64(sum.Calls()) }},
	{"traced", func(_ *Outcome, sum cpus.Tally) float64 { return float64(sum[cpus.Traced]) }},
	{"update", func(o *Outcome, _ cpus.Tally) float64 { return float64(o.Update) }},
	{"stolen", func(o *Outcome, _ cpus.Tally) float64 {
		all := Nanos(0)
		for _, ns := range o.Stolen {
			all += ns
		}
		return float64(all)
	}},
}

// TestThinningLaw: the calls that are drawn instead are spread as those of a machine
// that executes every call.
func TestThinningLaw(t *testing.T) {
	cases := thinningCases()
	for i := range cases {
		cases[i].Preempt, cases[i].Refs = true, int3.SharedRef
	}
	spreadAlike(t, cases, 150, 3000)
}

// spreadAlike executes every call of machines, and only hot ones. Each number's distributions over many seeds are held
// against each other by the test of Kolmogorov and Smirnov, at a level that one of a
// thousand equal pairs would miss for all numbers and machines together. It returns the machines of the last seed.
func spreadAlike(t *testing.T, cases []rigged, seeds, slowly int) (last []*rig) {
	t.Helper()
	if *long {
		seeds = slowly
	}
	alpha := 0.001 / float64(len(cases)*len(thinned)*2)
	// The two-sample bound of Smirnov (1939) for samples of one size.
	bound := math.Sqrt(-math.Log(alpha/2)/2) * math.Sqrt(2/float64(seeds))
	for _, c := range cases {
		samples := map[string][2][]float64{}
		var r *rig
		for seed := range uint64(seeds) {
			for way, calls := range []Thinning{Every, HotOnly} {
				c.Seed, c.Calls = seed*2+uint64(way), calls
				r = newRig(t, c)
				for i, out := range r.toggle() {
					for _, n := range thinned {
						name := []string{"enable ", "disable "}[i] + n.name
						s := samples[name]
						s[way] = append(s[way], n.of(&out, out.sum()))
						samples[name] = s
					}
				}
			}
		}
		last = append(last, r)
		for name, s := range samples {
			slices.Sort(s[0])
			slices.Sort(s[1])
			if d := stat.KolmogorovSmirnov(s[0], nil, s[1], nil); d > bound {
				t.Errorf("%s %s: %s differ: distance %.3f, at most %.3f; means %.1f and %.1f", c.arch, c.protocol, name, d, bound,
					stat.Mean(s[0], nil), stat.Mean(s[1], nil))
			}
		}
	}
	return last
}

// TestTrapsAsExpected: where traps take no time, their number is Poisson with a mean
// that follows from the plan alone: the time that each site holds a breakpoint, times
// how often it is called.
func TestTrapsAsExpected(t *testing.T) {
	k := plainCosts()
	k.Jitter, k.TrapEntry, k.TrapExit, k.Comparison, k.Reference, k.FetchLag = 0, 0, 0, 0, 0, 0
	k.Handler = 0 // nor is any time taken from calls
	const sites, n = 64, 5
	c := plain("x86_64", "native", sites, fmt.Sprint(n), k)
	c.Costs.Calls = 5e6
	// Site i of the batch holds its breakpoint from the end of store i of the first
	// phase on, until that of the third: all alike.
	round := k.RoundSetup + (n-1)*k.Send + k.Delivery + k.Answer + k.Fence
	exposed := 2 * (sites*k.Store + round)
	want := (n - 1) * c.Costs.Calls / 1e9 * exposed // a call is of some site of the batch
	const seeds = 400
	sum := 0.0
	for seed := range uint64(seeds) {
		c.Seed = seed
		out := newRig(t, c).update(true)
		sum += float64(out.sum()[cpus.Trap])
	}
	if mean, sigma := sum/seeds, math.Sqrt(want/seeds); math.Abs(mean-want) > 4*sigma {
		t.Errorf("%.2f traps on average, want %.2f within %.2f", mean, want, 4*sigma)
	}
}
