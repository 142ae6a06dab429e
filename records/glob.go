// SPDX-License-Identifier: Apache-2.0

package records

import "strings"

// glob is a pattern as the kernel's filters have them since Linux 4.10.
type glob struct {
	kind    globKind
	pattern string // what is left of it for the kind
}

type globKind uint8

// The kinds of struct regex, include/linux/trace_events.h: most patterns need no
// backtracking.
const (
	globFull globKind = iota
	globFront
	globMiddle
	globEnd
	globAny
)

// parseGlob sorts a pattern into its kind, as filter_parse_regex in
// kernel/trace/trace_events_filter.c does.
func parseGlob(p string) glob {
	inner := strings.TrimPrefix(p, "*")
	open := len(inner) < len(p)
	closed := strings.HasSuffix(inner, "*")
	word := strings.TrimSuffix(inner, "*")
	switch {
	case strings.ContainsAny(word, `*?[\`):
		return glob{globAny, p}
	case open && closed:
		return glob{globMiddle, word}
	case open:
		return glob{globEnd, word}
	case closed:
		return glob{globFront, word}
	}
	return glob{globFull, p}
}

// all tells whether the pattern is just a star.
func (g glob) all() bool {
	return g.pattern == "" && g.kind != globFull
}

func (g glob) match(s string) bool {
	switch g.kind {
	case globFull:
		return s == g.pattern
	case globFront:
		return strings.HasPrefix(s, g.pattern)
	case globMiddle:
		return strings.Contains(s, g.pattern)
	case globEnd:
		return strings.HasSuffix(s, g.pattern)
	}
	return globMatch(g.pattern, s)
}

// globMatch is glob_match of the kernel's lib/glob.c: * any string, ? any
// character, [a-z] and [!a-z] classes, \ takes the next character as it is. A
// class that is not closed is an ordinary bracket. Backtracking only ever goes
// back to the last star, which is enough.
func globMatch(pat, s string) bool {
	p, i := 0, 0
	backPat, backStr := -1, 0
	for {
		c, d := at(s, i), at(pat, p)
		i, p = i+1, p+1
		ok := false
		switch d {
		case '?':
			if c == 0 {
				return false
			}
			ok = true
		case '*':
			if p >= len(pat) {
				return true
			}
			i--
			backPat, backStr = p, i
			ok = true
		case '[':
			if c == 0 {
				return false
			}
			in, end := class(pat, p, c)
			if end == 0 {
				ok = c == '['
			} else if in {
				ok, p = true, end
			}
		case '\\':
			d = at(pat, p)
			p++
			fallthrough
		default:
			if c == d {
				if d == 0 {
					return true
				}
				ok = true
			}
		}
		if ok {
			continue
		}
		if c == 0 || backPat < 0 {
			return false
		}
		backStr++
		p, i = backPat, backStr
	}
}

// class reads the character class whose first character is pat[p]. It tells
// whether c is in it and where the pattern goes on; 0 if the class never ends.
func class(pat string, p int, c byte) (in bool, end int) {
	inverted := at(pat, p) == '!'
	if inverted {
		p++
	}
	a := at(pat, p)
	p++
	for {
		b := a
		if a == 0 {
			return false, 0
		}
		if at(pat, p) == '-' && at(pat, p+1) != ']' {
			b = at(pat, p+1)
			if b == 0 {
				return false, 0
			}
			p += 2
		}
		in = in || a <= c && c <= b
		a = at(pat, p)
		p++
		if a == ']' {
			return in != inverted, p
		}
	}
}

// at is the byte at i, 0 behind the end as in a C string.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
