// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Unsure is the factor by which an assumed quantity without an interval may be off,
// either way.
const Unsure = 4

// Interval is where the quantity lies. It is the source's interval. Without one, an
// assumed quantity may be off by a factor of Unsure, and any other is exact.
func (e Entry) Interval() (low, high float64) {
	switch {
	case e.Bounded():
		return e.Low, e.High
	case e.Basis == Assumed:
		return e.Value / Unsure, min(e.Value*Unsure, e.Quantity.Unit.most())
	}
	return e.Value, e.Value
}

// End is one end of all intervals.
type End uint8

// The ends. A higher rate makes updates longer, as a longer time does.
const (
	Short End = iota
	Long
)

// At is the calibration with every quantity at that end.
func (c *Calibration) At(end End) *Calibration {
	out := c.Clone()
	for _, e := range c.Entries {
		low, high := e.Interval()
		if *e.Quantity.Of(&out.Costs) = low; end == Long {
			*e.Quantity.Of(&out.Costs) = high
		}
	}
	return out
}

// Elsewhere is the entry where it is taken over for another machine: assumed, and at
// least as wide as an assumed one without an interval.
func (e Entry) Elsewhere() Entry {
	if e.Basis == Assumed {
		return e
	}
	low, high := e.Interval()
	e.Basis, e.Low, e.High = Assumed, 0, 0
	wideLow, wideHigh := e.Interval()
	e.Low, e.High = min(low, wideLow), max(high, wideHigh)
	return e
}

// law is how a quantity is drawn: triangular about its value, over its interval; of
// its logarithm where the interval is above 0, so that half and twice weigh the same.
type law struct {
	low, mode, high float64
	logs            bool
	value           float64 // the mode itself
}

func (e Entry) law() law {
	low, high := e.Interval()
	if low > 0 {
		return law{math.Log(low), math.Log(e.Value), math.Log(high), true, e.Value}
	}
	return law{low, e.Value, high, false, e.Value}
}

// at is the value that a share of all are below (the inverse of the distribution).
func (l law) at(share float64) float64 {
	width := l.high - l.low
	if width == 0 {
		return l.value
	}
	v := l.high - math.Sqrt((1-share)*width*(l.high-l.mode))
	if share < (l.mode-l.low)/width {
		v = l.low + math.Sqrt(share*width*(l.mode-l.low))
	}
	if l.logs {
		v = math.Exp(v)
	}
	return v
}

// Spread is a modelled figure and how far it may be off.
type Spread struct {
	Likely    float64 // with every quantity at its value
	Low, High float64 // 95 of 100 samples lie between them
	// Hangs is the quantity on which the figure hangs most; nil where it hangs on none.
	Hangs *Quantity
	// Assumed is the share of the figure that rests on quantities that are assumed.
	Assumed float64
}

// LowNS and HighNS are its ends, of a figure in nanoseconds, and AssumedPercent is Assumed, as rows have them.
func (s Spread) LowNS() float64          { return math.Round(s.Low) }
func (s Spread) HighNS() float64         { return math.Round(s.High) }
func (s Spread) AssumedPercent() float64 { return math.Round(1000*s.Assumed) / 10 }

// Scaled is the spread of so many times the figure.
func (s Spread) Scaled(by float64) Spread {
	s.Likely, s.Low, s.High = by*s.Likely, by*s.Low, by*s.High
	return s
}

// On names the quantity that the figure hangs on most; "" where there is none.
func (s Spread) On() string {
	if s.Hangs == nil {
		return ""
	}
	return s.Hangs.Name
}

// Samples is how many times all quantities are drawn for a spread.
const Samples = 500

// Within is the share of samples that a spread lets lie between its ends.
const Within = 0.95

// nudge is the relative change of a quantity by which its part of a figure is found.
const nudge = 0.01

// Spreads are the spreads of figures that follow from values of entries: figures
// writes them, from values in the order of the entries. samples times all values are
// drawn, each by itself; the same seed draws the same.
//
// Spreads moves each quantity alone from one end of its interval to the other, the others staying
// at their values. A figure hangs on the quantity that moves it most. The assumed share is found by
// letting each quantity grow by a hundredth: of the figure's changes, the share that assumed
// quantities cause. For times that are sums of costs that is their share of the sum (Euler's
// theorem on homogeneous functions).
func Spreads(entries []Entry, seed uint64, samples, figures int, at func(values, figures []float64)) []Spread {
	laws, values := make([]law, len(entries)), make([]float64, len(entries))
	for i, e := range entries {
		laws[i], values[i] = e.law(), e.Value
	}
	likely, found := make([]float64, figures), make([]float64, figures)
	at(values, likely)
	out := make([]Spread, figures)
	for k := range out {
		out[k].Likely = likely[k]
	}
	oneAtATime(entries, values, out, at)
	drawn := make([][]float64, figures)
	random := rand.New(rand.NewPCG(seed, streamSamples))
	for range samples {
		for i, l := range laws {
			values[i] = l.at(random.Float64())
		}
		at(values, found)
		for k, v := range found {
			drawn[k] = append(drawn[k], v)
		}
	}
	for k := range out {
		out[k].Low, out[k].High = ends(drawn[k], likely[k])
	}
	return out
}

// streamSamples keeps the samples apart from other draws with the same seed.
const streamSamples = 0x72616e6765

// ends are the order statistics between which Within of the samples lie, and the likely
// value too.
func ends(drawn []float64, likely float64) (low, high float64) {
	if len(drawn) == 0 {
		return likely, likely
	}
	slices.Sort(drawn)
	cut := int(float64(len(drawn)) * (1 - Within) / 2)
	return min(likely, drawn[cut]), max(likely, drawn[len(drawn)-1-cut])
}

// oneAtATime finds the quantity that each figure hangs on, and the assumed share of it.
func oneAtATime(entries []Entry, values []float64, out []Spread, at func(values, figures []float64)) {
	n := len(out)
	most, assumed, all := make([]float64, n), make([]float64, n), make([]float64, n)
	a, b := make([]float64, n), make([]float64, n)
	for i, e := range entries {
		low, high := e.Interval()
		if low < high {
			values[i] = low
			at(values, a)
			values[i] = high
			at(values, b)
			for k := range out {
				if swing := math.Abs(b[k] - a[k]); swing > most[k] {
					most[k], out[k].Hangs = swing, e.Quantity
				}
			}
		}
		values[i] = e.Value * (1 + nudge)
		at(values, a)
		values[i] = e.Value
		for k := range out {
			d := math.Abs(a[k] - out[k].Likely)
			if all[k] += d; e.Basis == Assumed {
				assumed[k] += d
			}
		}
	}
	for k := range out {
		if all[k] > 0 {
			out[k].Assumed = assumed[k] / all[k]
		}
	}
}

// Spreads are the spreads of figures that follow from the calibration's costs.
func (c *Calibration) Spreads(seed uint64, samples, figures int, at func(c *Costs, figures []float64)) []Spread {
	return Spreads(c.Entries, seed, samples, figures, func(values, figures []float64) {
		costs := c.Costs
		for i, e := range c.Entries {
			*e.Quantity.Of(&costs) = values[i]
		}
		at(&costs, figures)
	})
}

// RoundSpread is the spread of the mean time of a round to that many targets.
func (c *Calibration) RoundSpread(seed uint64, targets int) Spread {
	return c.Spreads(seed, Samples, 1, func(c *Costs, out []float64) { out[0] = c.Round(targets) })[0]
}
