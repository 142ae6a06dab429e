// SPDX-License-Identifier: Apache-2.0

package results

import (
	"math"
	"strconv"
)

// people are the endings of names of columns whose numbers people read with a unit beside
// them.
var people = map[string]func(float64) string{"_ns": Nanoseconds, "_bytes": Bytes}

// scale is a unit, its factor, and the number from which on it is used.
type scale struct {
	unit        string
	worth, from float64
}

var (
	times = []scale{{"ns", 1, 0}, {"us", 1e3, 1e3}, {"ms", 1e6, 1e6}, {"s", 1e9, 1e9}, {"min", 60e9, 120e9},
		{"h", 3600e9, 7200e9}}
	sizes = []scale{{"B", 1, 0}, {"KiB", 1 << 10, 1 << 10}, {"MiB", 1 << 20, 1 << 20}, {"GiB", 1 << 30, 1 << 30}}
)

// Nanoseconds prints a time as people read it, with four digits: 99 ns, 465.7 ms,
// 85.4 min.
func Nanoseconds(ns float64) string { return scaled(ns, times) }

// Bytes prints a size as people read it, with four digits: 16 B, 668.1 KiB.
func Bytes(n float64) string { return scaled(n, sizes) }

// scaled prints a number in the largest unit that it reaches.
func scaled(v float64, scales []scale) string {
	use := scales[0]
	for _, s := range scales {
		if math.Abs(v) >= s.from {
			use = s
		}
	}
	if v /= use.worth; math.Abs(v) >= 1000 {
		v = math.Round(v)
	}
	return formatFloat(v, max(4, len(strconv.Itoa(int(math.Abs(v)))))) + " " + use.unit
}
