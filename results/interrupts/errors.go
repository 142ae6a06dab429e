// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParseError says what is wrong with a text, and where. Its message is one line.
type ParseError struct {
	File   string // the name that was given to Parse
	Line   int    // counted from 1; 0 when it is about the whole text
	Value  string // the offending piece of the text, if there is one
	Reason string // what is wrong with it
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Value != "" {
		fmt.Fprintf(&b, "%q: ", clip(e.Value))
	}
	b.WriteString(e.Reason)
	return b.String()
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
