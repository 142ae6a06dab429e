// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// backWord ends a step that leads towards the old text.
const backWord = "back"

// ParseStep reads a step as String writes it, of a program that says all there is to
// say. A step that names no patches is about the first one.
func ParseStep(text string) (Step, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Step{}, fmt.Errorf("no step")
	}
	op := slices.Index(opNames[:], words[0])
	if op < 0 {
		return Step{}, fmt.Errorf("step %q: %w", words[0], notOneOf(words[0], opNames[:]))
	}
	st := Step{Op: Op(op), To: 1}
	args := words[1:]
	if st.Op.undoes() && len(args) > 0 && args[len(args)-1] == backWord {
		st.Undo, args = true, args[:len(args)-1]
	}
	fewest := 1
	if st.Op == Write && len(args) > 0 && args[0] == Bytes.String() { // the bytes come before the patches
		fewest = 3
	}
	if n := len(args); n >= fewest && (st.Op.undoes() || st.Op == Map) {
		if r, ok := ParseRange(args[n-1]); ok {
			st.From, st.To, args = int32(r.From), int32(r.To), args[:n-1]
		}
	}
	if reason := st.arguments(args); reason != "" {
		return Step{}, fmt.Errorf("%s: %s", text, reason)
	}
	return st, nil
}

// undoes tells whether steps of this kind lead towards one of a patch's two texts.
func (o Op) undoes() bool {
	switch o {
	case Verify, Publish, Write, Settle, Attach, Release:
		return true
	}
	return false
}

// ParseRange reads patches as steps spell them: "3", or "0..255".
func ParseRange(text string) (r Range, ok bool) {
	first, last, ranges := strings.Cut(text, "..")
	if !ranges {
		last = first
	}
	const bits = 16 // more than any program has
	from, err := strconv.ParseUint(first, 10, bits)
	to, err2 := strconv.ParseUint(last, 10, bits)
	return Range{int(from), int(to) + 1}, err == nil && err2 == nil && from <= to
}
