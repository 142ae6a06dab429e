// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The kinds, as the first letter of what Exact writes.
var exactKinds = map[ValueKind]string{KindString: "s", KindInt: "i", KindUint: "u", KindFloat: "f", KindBool: "b"}

// Exact is the cell with its kind, as text that ParseExact reads back as the very
// same cell: CSV and JSON do not tell 3 from 3.0.
func (v Value) Exact() string {
	if v.kind == KindString && !utf8.ValidString(v.text) { // the name of a file, which JSON could not hold
		return "q" + strconv.Quote(v.text)
	}
	return exactKinds[v.kind] + v.String()
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
		v = String(rest)
	case 'q':
		rest, err = strconv.Unquote(rest)
		v = String(rest)
	case 'i':
		var i int64
		i, err = strconv.ParseInt(rest, 10, 64)
		v = Int(i)
	case 'u':
		var u uint64
		u, err = strconv.ParseUint(rest, 10, 64)
		v = Uint(u)
	case 'f':
		var f float64
		f, err = strconv.ParseFloat(rest, 64)
		v = Float(f)
	case 'b':
		var b bool
		b, err = strconv.ParseBool(rest)
		v = Bool(b)
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

// Number is the cell as a float64, exact up to 2^53; false for what is none.
func (v Value) Number() (float64, bool) {
	switch v.kind {
	case KindInt:
		return float64(int64(v.bits)), true
	case KindUint:
		return float64(v.bits), true
	case KindFloat:
		return v.float(), true
	}
	return 0, false
}
