// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"math"
	"slices"

	"gonum.org/v1/plot"

	"github.com/textpoke/textpoke/results"
)

// apply sets a library's axis up for values that go so far.
func (a Axis) apply(to *plot.Axis, s span) {
	if a.Names != nil {
		to.Min, to.Max = -0.6, float64(len(a.Names))-0.4
		to.Tick.Marker = named(a.Names)
		to.Tick.Length = 0
		return
	}
	if a.Log {
		l := logScale{zero: s.zero, low: below(s.least), high: above(s.high)}
		if l.high <= l.low {
			l.high = 10 * l.low
		}
		to.Min, to.Max = l.low, l.high
		if l.zero {
			to.Min = 0
		}
		to.Scale, to.Tick.Marker = l, l
		return
	}
	room := (s.high - s.low) * 0.06
	if s.low >= 0 && s.low < s.high/2 {
		s.low = 0
	} else {
		s.low -= room
	}
	s.high += room
	if s.high <= s.low {
		s.high = s.low + 1
	}
	to.Min, to.Max = s.low, s.high
	to.Tick.Marker = plain{}
}

// round125 are the numbers that a logarithmic axis may begin and end with, times
// a power of ten.
var round125 = []float64{1, 2, 5, 10}

// below is the greatest round number that is not above v; above the least that
// is not below it.
func below(v float64) float64 {
	if v <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	out := ten
	for _, m := range round125 {
		if m*ten <= v*(1+1e-9) {
			out = m * ten
		}
	}
	return out
}

func above(v float64) float64 {
	low := below(v)
	if low >= v*(1-1e-9) {
		return low
	}
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	i := slices.IndexFunc(round125, func(m float64) bool { return m*ten > low*(1+1e-9) })
	return round125[i] * ten
}

// logScale places powers of ten evenly, and zero, where it occurs, left of them.
type logScale struct {
	zero      bool
	low, high float64
}

// gap is how much of the axis zero takes.
const gap = 0.09

// Normalize says where on the axis, from 0 to 1, a value is.
func (l logScale) Normalize(_, _, v float64) float64 {
	at := math.Log(v/l.low) / math.Log(l.high/l.low)
	if !l.zero {
		return at
	}
	if v <= 0 {
		return 0
	}
	return gap + (1-gap)*max(at, 0)
}

// Ticks marks the powers of ten, and more where there are few of them.
func (l logScale) Ticks(_, _ float64) (out []plot.Tick) {
	if l.zero {
		out = append(out, plot.Tick{Value: 0, Label: "0"})
	}
	decades := math.Log10(l.high / l.low)
	for e := math.Floor(math.Log10(l.low)); e <= math.Ceil(math.Log10(l.high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < l.low*0.999 || v > l.high*1.001 {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || decades <= 2 {
				t.Label = results.Thousands(v)
			}
			out = append(out, t)
		}
	}
	return out
}

// plain marks round numbers.
type plain struct{}

// Ticks are the library's, with labels that can be read.
func (plain) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = results.Thousands(ticks[i].Value)
		}
	}
	return ticks
}

// named marks places with names.
type named []string

// Ticks are the names.
func (n named) Ticks(_, _ float64) (out []plot.Tick) {
	for i, name := range n {
		out = append(out, plot.Tick{Value: float64(i), Label: name})
	}
	return out
}
