// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sim/timed"
)

// Ranges is how far an update's modelled times may be off, over the intervals of the
// calibration's quantities.
type Ranges struct {
	Update, Stolen, Exposure calibration.Spread
}

// reach is what ranges are worked out from, once somebody asks.
type reach struct {
	config   *Config
	estimate *timed.Estimate
	once     sync.Once
	ranges   *Ranges
}

// Ranges are those of the update; nil where none was executed.
func (v *Modelled) Ranges() *Ranges {
	if v == nil || v.reach == nil {
		return nil
	}
	v.reach.once.Do(func() { v.reach.ranges = v.work() })
	return v.reach.ranges
}

// work draws the costs and scales the engine's times as the estimate's go.
func (v *Modelled) work() *Ranges {
	c, e := v.reach.config, v.reach.estimate
	s := c.Calibration.Spreads(c.Seed, calibration.Samples, 3, func(costs *calibration.Costs, out []float64) {
		out[0], out[1], out[2] = e.Figures(c.asked(costs))
	})
	return &Ranges{
		Update: to(s[0], float64(v.Update)), Exposure: to(s[1], float64(v.Exposure)), Stolen: to(s[2], v.StolenMean),
	}
}

// to scales a spread to what was executed.
func to(s calibration.Spread, likely float64) calibration.Spread {
	if s.Likely == 0 {
		return calibration.Spread{Likely: likely, Low: likely, High: likely}
	}
	s = s.Scaled(likely / s.Likely)
	s.Likely = likely // to the last digit
	return s
}
