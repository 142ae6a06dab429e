// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Say are the ways in which people read numbers, by the names that templates and charts
// use for them.
var Say = map[string]func(float64) string{
	"plain": Plain, "thousands": Thousands[float64], "percent": Percent, "duration": Duration, "seconds": Seconds, "four": Four,
	"two": Two, "short": Short, "tenth": Tenth, "p": P,
	"us": func(ns float64) string { return Four(ns / 1e3) }, "ms": func(ns float64) string { return Four(ns / 1e6) },
	"bytes": Bytes, "ns": Nanoseconds, "about": About, "length": Length,
}

// Length prints nanoseconds in the largest unit that they fill, up to hours: 2.92 h, 57 min, 31.8 us.
func Length(ns float64) string {
	const second = 1e9
	for _, u := range []struct {
		name string
		ns   float64
	}{{"h", 3600 * second}, {"min", 60 * second}, {"s", second}, {"ms", 1e6}, {"us", 1e3}} {
		if math.Abs(ns) >= u.ns {
			return Short(ns/u.ns) + " " + u.name
		}
	}
	return Short(ns) + " ns"
}

// Plain prints a number with as few digits as read back as the same: 1234.5.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Thousands prints a number with commas between its thousands: 1,234.5.
func Thousands[T int | int64 | uint64 | float64](v T) string {
	s := Plain(math.Round(float64(v)*1e6) / 1e6)
	whole, rest, frac := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	var parts []string
	for len(whole) > 3 {
		parts = append(parts, whole[len(whole)-3:])
		whole = whole[:len(whole)-3]
	}
	parts = append(parts, whole)
	slices.Reverse(parts)
	out := sign + strings.Join(parts, ",")
	if frac {
		out += "." + rest
	}
	return out
}

// Percent prints a share: 12.5 %.
func Percent(share float64) string { return Four(100*share) + " %" }

// Duration prints nanoseconds: 456 us, 47 ms, 1.20 s.
func Duration(ns float64) string {
	switch us := ns / 1000; {
	case us >= 1e6:
		return Fixed(2, us/1e6) + " s"
	case us >= 1e4:
		return Fixed(0, us/1e3) + " ms"
	default:
		return Fixed(0, us) + " us"
	}
}

// Seconds prints a time in seconds: 12.3 ms, 4.56 s, 2.5 minutes.
func Seconds(s float64) string {
	switch {
	case s >= 120:
		return fmt.Sprintf("%.3g minutes", s/60)
	case s >= 0.1:
		return fmt.Sprintf("%.3g s", s)
	}
	return fmt.Sprintf("%.3g ms", 1e3*s)
}

// Four prints a number with four significant digits, and Two with two.
func Four(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
func Two(v float64) string  { return strconv.FormatFloat(v, 'g', 2, 64) }

// About prints nanoseconds with two digits, as many as a model supports: 650 us, 1.4 ms, 34 min.
func About(ns float64) string {
	text, unit, _ := strings.Cut(Nanoseconds(ns), " ")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v == 0 {
		return text + " " + unit
	}
	digits := 1 - int(math.Floor(math.Log10(math.Abs(v))))
	ten := math.Pow(10, float64(-digits))
	return strconv.FormatFloat(math.Round(v/ten)*ten, 'f', max(digits, 0), 64) + " " + unit
}

// Short prints a number with the digits that are worth reading: three, or all of the
// whole ones.
func Short(v float64) string {
	if v >= 1000 {
		return Thousands(math.Round(v))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Tenth prints a number with one digit behind the point, where it has any.
func Tenth(v float64) string { return Plain(math.Round(10*v) / 10) }

// Fixed prints a number with so many digits behind the point.
func Fixed(digits int, v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// P prints a p-value.
func P(p float64) string {
	if p < 0.0001 {
		return "below 0.0001"
	}
	return Fixed(4, p)
}

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
