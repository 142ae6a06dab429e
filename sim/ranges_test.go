// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"testing"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
)

// draws are costs as a calibration's ranges are made of.
func draws(k *calibration.Calibration, seed uint64, n int) (out []calibration.Costs) {
	k.Spreads(seed, n, 1, func(c *calibration.Costs, _ []float64) { out = append(out, *c) })
	return out[len(out)-n:] // the others are one at a time
}

// enabled executes a combination on costs, once for each seed, and says what update,
// exposure and stolen time were on average.
func enabled(t *testing.T, c Config, costs *calibration.Costs, seeds int) (mean, off [3]float64, row RunRow) {
	t.Helper()
	k := *c.Calibration
	k.Costs = *costs
	c.Calibration = &k
	var squares [3]float64
	for seed := range seeds {
		c.Seed = uint64(seed)
		var err error
		if row, err = newTimedFor(t, c, timed.HotOnly).Update(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		v := row.Modelled
		for i, x := range []float64{float64(v.Update), float64(v.Exposure), v.StolenMean} {
			mean[i] += x / float64(seeds)
			squares[i] += x * x / float64(seeds)
		}
	}
	for i := range mean {
		off[i] = math.Sqrt(max(squares[i]-mean[i]*mean[i], 0) / float64(seeds))
	}
	return mean, off, row
}

// TestEstimate holds estimates of an update on other costs against the engine, which
// executes it on them: costs are drawn as ranges draw them. What an estimate leaves out
// may move a time by a twentieth, and stolen time, which follows from one run's traps,
// by a quarter.
func TestEstimate(t *testing.T) {
	const seeds, costs = 24, 3
	for _, tt := range []struct{ calibration, protocol, roles string }{
		{"jump-label-24", "breakpoint", "busy=6"}, {"jump-label-24", "breakpoint", "busy=4,idle=2"},
		{"vm-2", "breakpoint", "busy=3,irqsoff=3"}, {"e7-8890", "breakpoint-lazy", "busy=3,isolated=3"},
		{"vm-2", "stop-machine", "busy=4,idle=1"}, {"jump-label-24", "per-site", "busy=6"},
		{"kvm-80", "breakpoint-global", "busy=16"}, {"m1", "native", "busy=8"}, {"m1", "breakpoint", "busy=5,offline=1"},
		{"sg2042", "native", "busy=4,irqsoff=2"}, {"sg2042", "breakpoint", "busy=4"},
		{"graviton2", "word", "busy=4,isolated=1"},
	} {
		for _, buffer := range []sched.Buffer{{Slots: 16}, sched.Dynamic} {
			t.Run(fmt.Sprintf("%s/%s/%s/%s", tt.calibration, tt.protocol, tt.roles, buffer), func(t *testing.T) {
				k, err := calibration.Open(tt.calibration)
				if err != nil {
					t.Fatal(err)
				}
				c := timedConfig(t, k.Arch, tt.protocol, "gen:n=48,order=sorted", tt.roles, k.Costs)
				c.Calibration, c.Buffer = k, buffer
				calls := 2e5
				c.Calls = &calls
				_, _, row := enabled(t, c, &k.Costs, 1)
				for _, other := range draws(k, 3, costs) {
					want, off, _ := enabled(t, c, &other, seeds)
					e := row.Modelled.reach.estimate
					update, exposure, stolen := e.Figures(c.asked(&other))
					for i, got := range []float64{update, exposure, stolen} {
						part := []float64{0.05, 0.05, 0.25}[i]
						if math.Abs(got-want[i]) > 4.5*off[i]+part*want[i]+200 {
							t.Errorf("%s: estimated %.0f ns, executed %.0f +- %.0f", []string{"update", "exposure", "stolen"}[i], got,
								want[i], off[i])
						}
					}
				}
			})
		}
	}
}

// TestRangesOfRow: what a row says lies between its ends, hangs on something, and is
// the same again; what was asked for is no part of the range.
func TestRangesOfRow(t *testing.T) {
	k, err := calibration.Open("jump-label-24")
	if err != nil {
		t.Fatal(err)
	}
	c := timedConfig(t, "x86_64", "breakpoint", "gen:n=200,order=sorted", "busy=4", k.Costs)
	c.Calibration = k
	row := toggle(t, newTimedFor(t, c, timed.HotOnly))[0]
	r := row.Modelled.Ranges()
	for _, s := range []calibration.Spread{r.Update, r.Stolen, r.Exposure} {
		if !(0 < s.Low && s.Low < s.Likely && s.Likely < s.High) || s.Hangs == nil || s.Assumed < 0 || s.Assumed > 1 {
			t.Errorf("%+v", s)
		}
	}
	if r.Update.Likely != float64(row.Modelled.Update) {
		t.Errorf("%+v of %d ns", r.Update, row.Modelled.Update)
	}
	if r.Stolen.On() != "calls" {
		t.Errorf("stolen time hangs on %s", r.Stolen.On())
	}
	again := toggle(t, newTimedFor(t, c, timed.HotOnly))[0].Modelled.Ranges()
	if *again != *r {
		t.Errorf("%+v, then %+v", *r, *again)
	}
	calls := k.Costs.Calls
	c.Calls = &calls
	if r := toggle(t, newTimedFor(t, c, timed.HotOnly))[0].Modelled.Ranges(); r.Stolen.On() == "calls" {
		t.Error("what was asked for moves the range")
	}
}

// TestEstimateOfSharedCounter: where handlers wait for the line of one counter an estimate is
// good to a third, be it that all CPUs wait for it all the time or that hardly one does. Costs
// that turn the one into the other are beyond it.
func TestEstimateOfSharedCounter(t *testing.T) {
	for _, tt := range []struct {
		calibration, roles string
		calls              float64
	}{{"refcount-480", "busy=64", 1e5}, {"vm-2", "busy=8", 1e6}} {
		k, err := calibration.Open(tt.calibration)
		if err != nil {
			t.Fatal(err)
		}
		c := timedConfig(t, k.Arch, "breakpoint", "gen:n=32,order=sorted", tt.roles, k.Costs)
		c.Calibration, c.Buffer, c.Refs, c.Calls = k, sched.Dynamic, int3.SharedRef, &tt.calls
		_, _, row := enabled(t, c, &k.Costs, 1)
		r := row.Modelled.Ranges()
		for _, s := range []calibration.Spread{r.Update, r.Stolen, r.Exposure} {
			if !(0 < s.Low && s.Low < s.Likely && s.Likely < s.High) || s.Hangs == nil {
				t.Errorf("%s: %+v", tt.roles, s)
			}
		}
		for _, other := range draws(k, 3, 3) {
			want, _, _ := enabled(t, c, &other, 3)
			update, exposure, stolen := row.Modelled.reach.estimate.Figures(c.asked(&other))
			for i, got := range []float64{update, exposure, stolen} {
				if math.Abs(got-want[i]) > want[i]/3 {
					t.Errorf("%s: %s: estimated %.0f ns, executed %.0f", tt.roles, []string{"update", "exposure", "stolen"}[i], got,
						want[i])
				}
			}
		}
	}
}
