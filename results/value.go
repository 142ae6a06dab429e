// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Value is one cell: a string, bool, int64, uint64 or float64, or nothing. Values are comparable with ==; the zero Value
// is [Empty].
type Value struct{ v any }

// Empty is the cell of a column that does not apply to a row.
var Empty = Value{}

// String makes a text cell.
func String(s string) Value { return Value{s} }

// Int makes a cell of a signed integer.
func Int(i int64) Value { return Value{i} }

// Uint makes a cell of an unsigned integer.
func Uint(u uint64) Value { return Value{u} }

// Float makes a cell of a floating-point number. NaN and the infinities can be
// held, but no row that has one is accepted: JSON cannot say them, and a number
// that does not exist is [Empty].
func Float(f float64) Value { return Value{f} }

// Bool makes a cell that is true or false.
func Bool(b bool) Value { return Value{b} }

// ValueOf turns a Go value into a cell: a Value itself, and strings, bools,
// integers and float64, also of named types. It refuses what has more than one
// meaning: a time.Duration (the column's name says the unit, so give the number
// in it), and a named integer with a String method (is the cell its name or its
// number? say v.String() or int64(v)).
func ValueOf(x any) (Value, error) {
	if v, ok := x.(Value); ok {
		return v, v.check()
	}
	if _, ok := x.(time.Duration); ok {
		return Empty, fmt.Errorf("a time.Duration has no unit of its own: give the number that the column's name asks for")
	}
	r := reflect.ValueOf(x)
	switch r.Kind() {
	case reflect.String:
		return String(r.String()), nil
	case reflect.Bool:
		return Bool(r.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Int(r.Int()), refuseStringer(x)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Uint(r.Uint()), refuseStringer(x)
	case reflect.Float64:
		v := Float(r.Float())
		return v, v.check()
	}
	return Empty, fmt.Errorf("%T cannot be a cell", x)
}

func refuseStringer(x any) error {
	if _, ok := x.(fmt.Stringer); ok {
		return fmt.Errorf("%T is a number with a String method: say which of the two the cell is", x)
	}
	return nil
}

// check refuses the floats that are not numbers.
func (v Value) check() error {
	if f, is := v.v.(float64); is && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return fmt.Errorf("%v is not a number: use Empty where no value applies", f)
	}
	return nil
}

// Any is the cell as a Go value: a string, bool, int64, uint64 or float64; nil for
// [Empty].
func (v Value) Any() any { return v.v }

// IsEmpty tells whether the cell does not apply.
func (v Value) IsEmpty() bool { return v.v == nil }

// Number is the cell as a float64, exact up to 2^53; false if it is no number.
func (v Value) Number() (float64, bool) {
	switch n := v.v.(type) {
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// String is the cell as CSV writes it, before any quoting: exact, and empty for
// [Empty].
func (v Value) String() string {
	switch x := v.v.(type) {
	case nil:
		return ""
	case float64:
		return formatFloat(x, -1)
	}
	return fmt.Sprint(v.v)
}

// formatFloat prints f with digits significant digits, or with as few as read
// back as f when digits is negative. Only very large and very small numbers get
// an exponent: 1e6 is a million, and a person should see the zeros.
func formatFloat(f float64, digits int) string {
	if digits >= 0 {
		// Round first, so that 0.1 prints as 0.1 and not as 0.100000.
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', digits, 64), 64)
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	return strconv.FormatFloat(f, form, -1, 64)
}

// MarshalJSON writes the cell as JSON; [Empty] is null.
func (v Value) MarshalJSON() ([]byte, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	switch x := v.v.(type) {
	case nil:
		return []byte("null"), nil
	case string:
		return quoteJSON(x)
	}
	return []byte(v.String()), nil
}

// quoteJSON quotes a string without the escapes that are only needed inside
// HTML: "<" in a reason should stay readable.
func quoteJSON(s string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Exact is the cell with its kind, as text that ParseExact reads back as the very
// same cell: CSV and JSON do not tell 3 from 3.0.
func (v Value) Exact() string {
	switch x := v.v.(type) {
	case nil:
		return ""
	case string:
		if !utf8.ValidString(x) { // the name of a file, which JSON could not hold
			return "q" + strconv.Quote(x)
		}
	}
	return fmt.Sprintf("%T", v.v)[:1] + v.String()
}

// ParseExact reads what Exact wrote.
func ParseExact(text string) (Value, error) {
	if text == "" {
		return Empty, nil
	}
	var v Value
	var err error
	switch rest := text[1:]; text[0] {
	case 's':
		v.v = rest
	case 'q':
		v.v, err = strconv.Unquote(rest)
	case 'i':
		v.v, err = strconv.ParseInt(rest, 10, 64)
	case 'u':
		v.v, err = strconv.ParseUint(rest, 10, 64)
	case 'f':
		v.v, err = strconv.ParseFloat(rest, 64)
	case 'b':
		v.v, err = strconv.ParseBool(rest)
	default:
		return Empty, fmt.Errorf("cell %q: no kind of cell begins with %q", text, text[:1])
	}
	if err == nil {
		err = v.check()
	}
	if err != nil {
		return Empty, fmt.Errorf("cell %q: %w", text, err)
	}
	return v, nil
}

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
