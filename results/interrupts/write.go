// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Validate tells whether a snapshot could have been read: CPUs ascend, names are
// names of rows and unique, counts are not negative and one a CPU (or one for
// all, without a description), descriptions do not begin with one more count.
func (s Snapshot) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("interrupts snapshot: "+format, args...)
	}
	if len(s.CPUs) == 0 || len(s.Rows) == 0 {
		return fail("%d CPUs and %d rows", len(s.CPUs), len(s.Rows))
	}
	for i, c := range s.CPUs {
		if c < 0 || i > 0 && c <= s.CPUs[i-1] {
			return fail("CPU %d is out of order", c)
		}
	}
	seen := make(map[string]bool, len(s.Rows))
	for _, r := range s.Rows {
		if m := rowName.FindStringSubmatch(r.Name + ":"); m == nil || m[1] != r.Name {
			return fail("%q is no name of a row", r.Name)
		}
		if seen[r.Name] {
			return fail("row %s stands there twice", r.Name)
		}
		seen[r.Name] = true
		if len(r.Counts) != len(s.CPUs) && !(len(r.Counts) == 1 && r.Description == "") {
			return fail("row %s has %s for %s", r.Name, plural(len(r.Counts), "count"), plural(len(s.CPUs), "CPU"))
		}
		if slices.Min(r.Counts) < 0 {
			return fail("row %s has a negative count", r.Name)
		}
		if !validDescription(r.Description) {
			return fail("row %s cannot have the description %q", r.Name, r.Description)
		}
	}
	return nil
}

func validDescription(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	first, _ := cutField(s)
	return s == strings.TrimSpace(s) && utf8.ValidString(s) && !strings.ContainsFunc(s, control) &&
		!number.MatchString(first)
}

// Write lays a snapshot out as Linux lays out /proc/interrupts: a header with the online CPUs,
// labels at the right of a column as wide as the longest interrupt number (three characters at
// least), counts in columns of ten, descriptions three blanks behind them, except that the name of
// an interrupt chip, on the rows of numbered interrupts, ends at the eighth place. Parse reads the
// output back as the same snapshot, apart from Name and the line numbers.
func Write(w io.Writer, s Snapshot) error {
	if err := s.Validate(); err != nil {
		return err
	}
	label := 3
	for _, r := range s.Rows {
		if isDigit(r.Name[0]) {
			label = max(label, len(r.Name))
		}
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%*s", label+8, "")
	for _, c := range s.CPUs {
		fmt.Fprintf(b, "CPU%-8d", c)
	}
	b.WriteByte('\n')
	for _, r := range s.Rows {
		writeRow(b, label, r, s.Global(r))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write interrupts: %w", err)
	}
	return nil
}

// Narrow divides a snapshot's CPUs among snapshots that [Write] lays out in lines of at most so many characters, as far as
// descriptions and a CPU a snapshot allow. Rows that count for the whole machine are in the last one. A width of 0 is any.
func Narrow(s Snapshot, width int) (parts []Snapshot) {
	beside := 0
	for _, r := range s.Rows {
		beside = max(beside, len(r.Name)+len(": ")+len("  ")+utf8.RuneCountInString(r.Description))
	}
	each := len(s.CPUs)
	if width > 0 {
		each = min(each, max(1, (width-beside)/len("4294967295 ")))
	}
	for from := 0; from < len(s.CPUs); from += each {
		to := min(from+each, len(s.CPUs))
		part := Snapshot{Name: s.Name, CPUs: s.CPUs[from:to]}
		for _, r := range s.Rows {
			if !s.Global(r) {
				r.Counts = r.Counts[from:to]
				part.Rows = append(part.Rows, r)
			} else if to == len(s.CPUs) {
				part.Rows = append(part.Rows, r)
			}
		}
		parts = append(parts, part)
	}
	return parts
}

func writeRow(b *bufio.Writer, label int, r Row, global bool) {
	// Labels that are too wide push into the blank behind the colon: "IPI0:".
	fmt.Fprintf(b, "%-*s", label+2, fmt.Sprintf("%*s:", label, r.Name))
	if global {
		fmt.Fprintf(b, "%10d\n", r.Counts[0])
		return
	}
	for _, n := range r.Counts {
		fmt.Fprintf(b, "%10d ", n)
	}
	if isDigit(r.Name[0]) {
		chip, rest := cutField(r.Description)
		fmt.Fprintf(b, " %8s%s\n", chip, rest)
		return
	}
	fmt.Fprintf(b, "  %s\n", r.Description)
}
