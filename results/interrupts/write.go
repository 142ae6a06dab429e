// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"bufio"
	"fmt"
	"io"
	"unicode/utf8"
)

// Write lays a snapshot out as Linux lays out /proc/interrupts: a header with the online CPUs,
// labels at the right of a column as wide as the longest interrupt number (three characters at
// least), counts in columns of ten, descriptions three blanks behind them, except that the name of
// an interrupt chip, on the rows of numbered interrupts, ends at the eighth place. Parse reads the
// output of a snapshot that it could have read back as the same, apart from Name and the line numbers.
func Write(w io.Writer, s Snapshot) error {
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
