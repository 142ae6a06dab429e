// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"regexp"
	"strconv"
	"strings"
)

// This file knows what single lines look like; scan.go puts them together.

// wrapColumn is the length below which no mail program wraps a line: below a row
// of shorter ones, text is not the rest of a description.
const wrapColumn = 40

// maxDescriptionWords is how long the rest of a description may be: the longest
// in Linux, "CPU stop (for crash dump) interrupts", has six words.
const maxDescriptionWords = 6

// cutMarks takes the marks of quoting and of a diff off a line. depth is the
// number of quote marks; mark is '<', '-' or '+', or 0 for none. A '>' always
// counts as quoting here: which of them marks a row's side can only be told when
// the whole diff is known.
func cutMarks(s string) (depth int, mark byte, text string) {
	i := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case ' ', '\t':
			continue
		case '>', '|':
			if mark == 0 {
				depth++
			}
			continue
		case '<':
			mark = '<'
			continue
		}
		break
	}
	text = strings.TrimSpace(s[i:])
	if mark == 0 && text != "" && (text[0] == '-' || text[0] == '+') {
		// Only in front of a row or a header: lists have dashes, too.
		rest := strings.TrimSpace(text[1:])
		if _, _, row := cutRow(rest); row || isHeader(rest) {
			return depth, text[0], rest
		}
	}
	return depth, mark, text
}

var (
	rowName    = regexp.MustCompile(`^([0-9]+|Err|[A-Z][A-Z0-9_/]+):(.*)$`)
	headerCell = regexp.MustCompile(`^CPU([0-9]+)$`)
	number     = regexp.MustCompile(`^-?[0-9]+$`)
)

// startsCounts tells whether a text begins with counts: with a number, or with
// something that starts as one and has a number behind it. "CAL: 1x 2" is a
// damaged row, "NOTE: 2nd try" is prose.
func startsCounts(s string) bool {
	first, rest := cutField(s)
	second, _ := cutField(rest)
	return number.MatchString(first) || startsAsNumber(first) && number.MatchString(second)
}

// cutRow splits "NAME: counts description".
func cutRow(s string) (name, rest string, ok bool) {
	m := rowName.FindStringSubmatch(s)
	if m == nil {
		return "", "", false
	}
	if !startsCounts(m[2]) {
		return "", "", false
	}
	// "10:30" is a time of day. Only after a word may the count follow at once:
	// arm64 leaves no room there for ten digits.
	if isDigit(m[1][0]) && !strings.HasPrefix(m[2], " ") && !strings.HasPrefix(m[2], "\t") {
		return "", "", false
	}
	return m[1], m[2], true
}

func isHeader(s string) bool {
	for f := range strings.FieldsSeq(s) {
		if !headerCell.MatchString(f) {
			return false
		}
	}
	return s != ""
}

// headerCPUs reads the CPU numbers of a header.
func headerCPUs(s string) (cpus []int, bad, reason string) {
	for f := range strings.FieldsSeq(s) {
		n, err := strconv.ParseInt(f[len("CPU"):], 10, 32)
		if err != nil {
			return nil, f, "there is no such CPU"
		}
		if len(cpus) > 0 && int(n) <= cpus[len(cpus)-1] {
			return nil, f, "the CPUs of a header ascend"
		}
		cpus = append(cpus, int(n))
	}
	return cpus, "", ""
}

// isCommand recognises the command line that made a diff, with or without a
// prompt: a new diff begins there.
func isCommand(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, "#$% "), "diff ")
}

// isDescriptionRest tells whether a line can be the wrapped rest of a
// description. Without a small letter it could also be the name of a row that
// the end of the text cut off.
func isDescriptionRest(s string) bool {
	first, last := s[0], s[len(s)-1]
	if !(first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z') || strings.IndexByte(".,:;?!", last) >= 0 {
		return false
	}
	small := strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' })
	return small && !strings.HasPrefix("Err", s) && len(strings.Fields(s)) <= maxDescriptionWords
}

// cutField splits off the first word.
func cutField(s string) (field, rest string) {
	s = strings.TrimLeft(s, " \t")
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// startsAsNumber tells whether a word begins like a count, negative ones too.
func startsAsNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && isDigit(s[0])
}
