// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// ValueKind says which sort of value a [Value] holds.
type ValueKind uint8

// The kinds of values. The zero Value is of KindEmpty.
const (
	KindEmpty ValueKind = iota
	KindString
	KindInt
	KindUint
	KindFloat
	KindBool
)

// Value is one cell. Values are comparable with ==; the zero Value is [Empty].
type Value struct {
	text string
	bits uint64
	kind ValueKind
}

// Empty is the cell of a column that does not apply to a row.
var Empty = Value{}

// String makes a text cell.
func String(s string) Value { return Value{kind: KindString, text: s} }

// Int makes a cell of a signed integer.
func Int(i int64) Value { return Value{kind: KindInt, bits: uint64(i)} }

// Uint makes a cell of an unsigned integer.
func Uint(u uint64) Value { return Value{kind: KindUint, bits: u} }

// Float makes a cell of a floating-point number. NaN and the infinities can be
// held, but no row that has one is accepted: JSON cannot say them, and a number
// that does not exist is [Empty].
func Float(f float64) Value { return Value{kind: KindFloat, bits: math.Float64bits(f)} }

// Bool makes a cell that is true or false.
func Bool(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.bits = 1
	}
	return v
}

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
	if f := v.float(); v.kind == KindFloat && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return fmt.Errorf("%v is not a number: use Empty for what does not apply", f)
	}
	return nil
}

// Kind tells what the cell holds.
func (v Value) Kind() ValueKind { return v.kind }

// IsEmpty tells whether the cell does not apply.
func (v Value) IsEmpty() bool { return v.kind == KindEmpty }

// IsNumber tells whether the cell is an integer or a float.
func (v Value) IsNumber() bool {
	return v.kind == KindInt || v.kind == KindUint || v.kind == KindFloat
}

func (v Value) float() float64 { return math.Float64frombits(v.bits) }

// String is the cell as CSV writes it, before any quoting: exact, and empty for
// [Empty].
func (v Value) String() string {
	switch v.kind {
	case KindString:
		return v.text
	case KindInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case KindUint:
		return strconv.FormatUint(v.bits, 10)
	case KindFloat:
		return formatFloat(v.float(), -1)
	case KindBool:
		return strconv.FormatBool(v.bits != 0)
	}
	return ""
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
	switch v.kind {
	case KindEmpty:
		return []byte("null"), nil
	case KindString:
		return quoteJSON(v.text)
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

// Any is the cell as a Go value: a string, bool, int64, uint64 or float64; nil for
// [Empty].
func (v Value) Any() any {
	switch v.kind {
	case KindString:
		return v.text
	case KindInt:
		return int64(v.bits)
	case KindUint:
		return v.bits
	case KindFloat:
		return v.float()
	case KindBool:
		return v.bits != 0
	}
	return nil
}
