// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"strconv"
	"unicode/utf8"

	"github.com/textpoke/textpoke/internal/inputs"
)

// ParseError says where a text stops making sense: file, line, value, reason.
type ParseError = inputs.ParseError

// wrong is what is wrong with a text: in a line, counted from 1, or 0 for all of it; with a value, or "" for none.
func wrong(file string, line int, value, reason string) error {
	if value != "" {
		value = strconv.Quote(clip(value))
	}
	return &ParseError{File: file, Line: line, Value: value, Reason: reason}
}

// clip keeps a value short enough for one line of a terminal.
func clip(s string) string {
	const most = 48
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
