// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"strconv"
	"strings"
)

// ParseError says where an input stops making sense. It prints as one line:
//
//	foo.txt:17: address "zz": not hexadecimal
type ParseError struct {
	File   string // as it was asked for
	Line   int    // counted from 1; 0 where the input has no lines
	Value  string // what was looked at, named and quoted: address "zz"; may be ""
	Reason string // what is wrong with it
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(oneLine(e.File))
	if e.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(e.Line))
	}
	b.WriteString(": ")
	if e.Value != "" {
		b.WriteString(e.Value)
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// oneLine keeps a file's name from breaking the line that it is printed in.
func oneLine(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return strconv.Quote(name)
	}
	return name
}
