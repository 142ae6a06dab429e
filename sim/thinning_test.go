package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/sim/timed"
)

// thinningCases are small machines whose calls meet breakpoints, stale text and
// nothing at all.
func thinningCases(t testing.TB) []Config {
	k := plainCosts()
	k.Calls, k.FetchLag = 2e6, 20_000
	var out []Config
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "breakpoint", "breakpoint-lazy"} {
			out = append(out, timedConfig(t, arch, protocol, "gen:n=60,groups=2,order=grouped", "busy=4,irqsoff=1,idle=1,isolated=1", k))
			out[len(out)-1].Buffer.Slots = 16
		}
	}
	return out
}

// TestThinning: calls that are left out change nothing. One machine executes every
// call, the other one draws the same calls and executes only the hot ones: they must
// do the same to the last nanosecond and the last call.
func TestThinning(t *testing.T) {
	for _, c := range thinningCases(t) {
		for seed := range uint64(20) {
			c.Seed = seed
			c.Preempt = seed%2 == 1
			c.Refs = []int3.Refs{int3.PerCPU, int3.SharedRef}[seed/2%2]
			every := toggle(t, newTimedFor(t, c, timed.Every))
			skip := toggle(t, newTimedFor(t, c, timed.EverySkip))
			for i := range every {
				every[i].Modelled.Events, skip[i].Modelled.Events = 0, 0
				if diff := cmp.Diff(every[i].Modelled, skip[i].Modelled); diff != "" {
					t.Fatalf("%s, seed %d: %s", c.String(), seed, diff)
				}
				if diff := cmp.Diff(every[i].Tallies, skip[i].Tallies); diff != "" {
					t.Fatalf("%s, seed %d: %s", c.String(), seed, diff)
				}
				if diff := cmp.Diff(every[i].Stolen, skip[i].Stolen); diff != "" {
					t.Fatalf("%s, seed %d: %s", c.String(), seed, diff)
				}
			}
		}
	}
}

// thinned are the numbers that both ways of drawing calls must spread alike.
var thinned = []struct {
	name string
	of   func(r *RunRow) float64
}{
	{"traps", func(r *RunRow) float64 { return float64(r.Traps) }},
	{"calls", func(r *RunRow) float64 { return float64(r.Calls) }},
	{"traced", func(r *RunRow) float64 { return float64(r.Traced) }},
	{"update_ns", func(r *RunRow) float64 { return float64(r.Modelled.Update) }},
	{"stolen_mean_ns", func(r *RunRow) float64 { return r.Modelled.StolenMean }},
}

// TestThinningLaw: the calls that are drawn instead are spread as those of a machine
// that executes every call. Each number's distributions over many seeds are held
// against each other by the test of Kolmogorov and Smirnov, at a level that one of a
// thousand equal pairs would miss for all numbers and machines together.
func TestThinningLaw(t *testing.T) {
	seeds := 150
	if *long {
		seeds = 3000
	}
	cases := thinningCases(t)
	alpha := 0.001 / float64(len(cases)*len(thinned)*2)
	// The two-sample bound of Smirnov (1939) for samples of one size.
	bound := math.Sqrt(-math.Log(alpha/2)/2) * math.Sqrt(2/float64(seeds))
	for _, c := range cases {
		c.Preempt, c.Refs = true, int3.SharedRef
		samples := map[string][2][]float64{}
		for seed := range uint64(seeds) {
			for way, calls := range []timed.Thinning{timed.Every, timed.HotOnly} {
				c.Seed = seed*2 + uint64(way)
				for _, row := range toggle(t, newTimedFor(t, c, calls)) {
					for _, n := range thinned {
						s := samples[row.Direction+" "+n.name]
						s[way] = append(s[way], n.of(&row))
						samples[row.Direction+" "+n.name] = s
					}
				}
			}
		}
		for name, s := range samples {
			slices.Sort(s[0])
			slices.Sort(s[1])
			if d := stat.KolmogorovSmirnov(s[0], nil, s[1], nil); d > bound {
				t.Errorf("%s: %s differ: distance %.3f, at most %.3f; means %.1f and %.1f", c.String(), name, d, bound,
					stat.Mean(s[0], nil), stat.Mean(s[1], nil))
			}
		}
	}
}

// TestTrapsAsExpected: where traps take no time, their number is Poisson with a mean
// that follows from the plan alone: the time that each site holds a breakpoint, times
// how often it is called.
func TestTrapsAsExpected(t *testing.T) {
	k := plainCosts()
	k.Jitter, k.TrapEntry, k.TrapExit, k.Comparison, k.Reference, k.FetchLag = 0, 0, 0, 0, 0, 0
	k.Handler = 0 // nor is any time taken from calls
	const sites, n = 64, 5
	c := timedConfig(t, "x86_64", "native", fmt.Sprintf("gen:n=%d,groups=1,order=sorted", sites), fmt.Sprint(n), k)
	c.Calls = 5e6
	// Site i of the batch holds its breakpoint from the end of store i of the first
	// phase on, until that of the third: all alike.
	round := k.RoundSetup + (n-1)*k.Send + k.Delivery + k.Answer + k.Fence
	exposed := 2 * (sites*k.Store + round)
	want := (n - 1) * c.Calls / 1e9 * exposed // a call is of some site of the batch
	const seeds = 400
	sum := 0.0
	for seed := range uint64(seeds) {
		c.Seed = seed
		row, err := newTimedFor(t, c, timed.HotOnly).Update(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		sum += float64(row.Traps)
	}
	if mean, sigma := sum/seeds, math.Sqrt(want/seeds); math.Abs(mean-want) > 4*sigma {
		t.Errorf("%.2f traps on average, want %.2f within %.2f", mean, want, 4*sigma)
	}
}
