// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"io"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Snapshot is one reading of /proc/interrupts, or some rows of one.
type Snapshot struct {
	Name string // where it was read: a file name, for messages
	CPUs []int  // the CPUs that were online, ascending
	Rows []Row
}

// Row is one line of a Snapshot.
type Row struct {
	Name        string  // "CAL", "IPI1", "24"
	Counts      []int64 // one a CPU, in the order of Snapshot.CPUs, or a single one: see Global
	Description string  // what follows the counts, without the blanks around it
	Line        int     // where it was read, counted from 1; 0 if it was not read
}

// Global tells whether the row counts for the whole machine and not for each
// CPU, as ERR and MIS do on x86. On a machine of one CPU there is no difference,
// and the answer is false.
func (s Snapshot) Global(r Row) bool { return len(r.Counts) == 1 && len(s.CPUs) > 1 }

// Row finds a row by its name.
func (s Snapshot) Row(name string) (Row, bool) {
	i := slices.IndexFunc(s.Rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return s.Rows[i], true
}

// Pair is two readings that belong together.
type Pair struct {
	Before, After Snapshot
}

// Parse reads one snapshot; the package comment says what it may look like. name
// is for messages. Rows of one side of a diff are rows like others; a text with
// both sides holds two snapshots and is for [ParseDiff].
func Parse(name string, r io.Reader) (Snapshot, error) {
	rows, err := scan(name, r)
	if err != nil {
		return Snapshot{}, err
	}
	sides := sidesOf(rows)
	if slices.Contains(sides, sideBefore) {
		if i := slices.Index(sides, sideAfter); i >= 0 {
			return Snapshot{}, wrong(name, rows[i].row.Line, rows[i].row.Name,
				"the text holds both sides of a diff: name the same file as before and as after")
		}
	}
	return assemble(name, rows)
}

// ParseDiff reads a text that holds diffs of /proc/interrupts files, or of rows
// of them, such as a mail. A new pair begins at each command line "diff ...", and
// at a row that both sides of the pair before already have.
func ParseDiff(name string, r io.Reader) ([]Pair, error) {
	rows, err := scan(name, r)
	if err != nil {
		return nil, err
	}
	var (
		pairs         []Pair
		before, after []*scanned
	)
	flush := func() error {
		if len(before)+len(after) == 0 {
			return nil
		}
		p, err := makePair(name, before, after)
		pairs = append(pairs, p)
		before, after = nil, nil
		return err
	}
	sides, section := sidesOf(rows), 0
	for i, row := range rows {
		if row.section != section || startsPair(row, sides[i], before, after) {
			if err := flush(); err != nil {
				return nil, err
			}
			section = row.section
		}
		if sides[i] == sideBefore || sides[i] == sideBoth {
			before = append(before, row)
		}
		if sides[i] == sideAfter || sides[i] == sideBoth {
			after = append(after, row)
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, wrong(name, 0, "", `there is no diff: no rows marked "<" (before) and ">" (after)`)
	}
	return pairs, nil
}

// startsPair tells whether a row cannot belong to the pair so far because both
// sides of it have one of that name. A name that only its own side has is left
// to assemble, which refuses it.
func startsPair(row *scanned, side side, before, after []*scanned) bool {
	has := func(rows []*scanned) bool {
		return slices.ContainsFunc(rows, func(r *scanned) bool { return r.row.Name == row.row.Name })
	}
	return side != sideNone && has(before) && has(after)
}

type side int

const (
	sideNone   side = iota // part of no diff
	sideBefore             // "<" or "-"
	sideAfter              // ">" or "+"
	sideBoth               // unmarked, in a unified diff
)

// sidesOf tells the side of each row. Only a whole section shows whether its
// rows have one ">" too many for quoting, and whether it is a unified diff.
func sidesOf(rows []*scanned) []side {
	type section struct {
		quoted  int // the depth of its "<" rows; -1 without any
		unified bool
	}
	sections := map[int]section{}
	for _, r := range rows {
		s, ok := sections[r.section]
		if !ok {
			s.quoted = -1
		}
		if r.mark == '<' && s.quoted < 0 {
			s.quoted = r.depth
		}
		s.unified = s.unified || r.mark == '-' || r.mark == '+'
		sections[r.section] = s
	}
	sides := make([]side, len(rows))
	for i, r := range rows {
		s := sections[r.section]
		switch {
		case r.mark == '<' || r.mark == '-':
			sides[i] = sideBefore
		case r.mark == '+', s.quoted >= 0 && r.depth == s.quoted+1:
			sides[i] = sideAfter
		case s.unified:
			sides[i] = sideBoth
		}
	}
	return sides
}

func makePair(file string, before, after []*scanned) (Pair, error) {
	for _, s := range []struct {
		rows, other []*scanned
		missing     string
	}{{before, after, "before (<)"}, {after, before, "after (>)"}} {
		if len(s.rows) == 0 {
			row := s.other[0].row
			return Pair{}, wrong(file, row.Line, row.Name, "the diff that begins here has no rows of the side "+
				s.missing)
		}
	}
	b, err := assemble(file, before)
	if err != nil {
		return Pair{}, err
	}
	a, err := assemble(file, after)
	return Pair{Before: b, After: a}, err
}

// assemble makes a snapshot of rows, which must agree about the CPUs.
func assemble(file string, rows []*scanned) (Snapshot, error) {
	fail := func(r *scanned, reason string) (Snapshot, error) {
		return Snapshot{}, wrong(file, r.row.Line, r.row.Name, reason)
	}
	for _, r := range rows {
		if !slices.Equal(r.cpus, rows[0].cpus) {
			return fail(r, "the rows above it are under another header")
		}
	}
	s := Snapshot{Name: file, CPUs: rows[0].cpus}
	if s.CPUs == nil {
		widest := 0
		for _, r := range rows {
			widest = max(widest, len(r.row.Counts))
		}
		s.CPUs = spelling.Numbers(widest)
	}
	s.CPUs = slices.Clone(s.CPUs)
	lines := make(map[string]int, len(rows))
	for _, r := range rows {
		if line, twice := lines[r.row.Name]; twice {
			return fail(r, fmt.Sprintf("the row stands there twice, first in line %d", line))
		}
		lines[r.row.Name] = r.row.Line
		if have := len(r.row.Counts); have != len(s.CPUs) && !(have == 1 && r.row.Description == "") {
			return fail(r, fmt.Sprintf("the row has %s, others have %d", spelling.Several(have, "count"), len(s.CPUs)))
		}
		s.Rows = append(s.Rows, r.row)
	}
	return s, nil
}
