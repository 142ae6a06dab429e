// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"math"
	"slices"

	"github.com/textpoke/textpoke/results"
)

// Axis is one of the two. Zero on an axis that is Log has a place of its own,
// left of a gap. With Names the values are places: 0, 1, 2 and so on.
type Axis struct {
	Label string
	Log   bool
	Names []string
}

// span is a range of values.
type span struct {
	low, high float64
	least     float64 // smallest value above 0
	any, zero bool
}

func (s *span) add(v float64) {
	if !s.any {
		s.low, s.high, s.any = v, v, true
	}
	s.low, s.high, s.zero = min(s.low, v), max(s.high, v), s.zero || v == 0
	if v > 0 && (s.least == 0 || v < s.least) {
		s.least = v
	}
}

// scale places the values of an axis, from 0 at its beginning to 1 at its end.
type scale struct {
	low, high float64
	log, zero bool // zero: a logarithmic one has a place for 0
	names     []string
}

// scale is that of values which go so far.
func (a Axis) scale(s span) scale {
	if a.Names != nil {
		return scale{low: -0.6, high: float64(len(a.Names)) - 0.4, names: a.Names}
	}
	if a.Log {
		out := scale{log: true, zero: s.zero, low: below(s.least), high: above(s.high)}
		if out.high <= out.low {
			out.high = 10 * out.low
		}
		return out
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
	return scale{low: s.low, high: s.high}
}

// gap is how much of a logarithmic axis zero takes.
const gap = 0.09

func (s scale) at(v float64) float64 {
	if !s.log {
		return (v - s.low) / (s.high - s.low)
	}
	at := math.Log(v/s.low) / math.Log(s.high/s.low)
	if !s.zero {
		return at
	}
	if v <= 0 {
		return 0
	}
	return gap + (1-gap)*max(at, 0)
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

// tick is a mark at an axis; without a label a short one.
type tick struct {
	value float64
	label string
}

// ticks are names, powers of ten and more where there are few of them, or round numbers.
func (s scale) ticks() (out []tick) {
	if s.names != nil {
		for i, name := range s.names {
			out = append(out, tick{float64(i), name})
		}
		return out
	}
	if !s.log {
		step := above((s.high - s.low) / 6)
		for i := math.Ceil(s.low / step); i*step <= s.high; i++ {
			out = append(out, tick{i * step, results.Thousands(i * step)})
		}
		return out
	}
	if s.zero {
		out = append(out, tick{0, "0"})
	}
	decades := math.Log10(s.high / s.low)
	for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
		for _, m := range round125[:3] {
			t := tick{value: m * math.Pow(10, e)}
			if t.value < s.low*0.999 || t.value > s.high*1.001 {
				continue
			}
			if m == 1 || decades <= 2 {
				t.label = results.Thousands(t.value)
			}
			out = append(out, t)
		}
	}
	return out
}
