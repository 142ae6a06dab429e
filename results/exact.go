// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

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
