// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/records"
)

// sheet reads a CSV file row by row. The first error stays and ends it.
type sheet struct {
	file   string
	r      *csv.Reader
	header []string
	cells  []string
	err    error
}

func newSheet(file string, r io.Reader, header string) *sheet {
	s := &sheet{file: file, r: csv.NewReader(r), header: strings.Split(header, ",")}
	s.r.FieldsPerRecord, s.r.ReuseRecord = -1, true
	switch {
	case !s.row():
		if s.err == nil {
			s.err = &records.ParseError{File: file, Reason: "no header " + header}
		}
	case !slices.Equal(s.cells, s.header):
		s.fail(0, "header", strings.Join(s.cells, ","), "not "+header)
	}
	return s
}

// next goes to the next row; false at the end, and after an error.
func (s *sheet) next() bool {
	if s.err != nil || !s.row() {
		return false
	}
	if len(s.cells) != len(s.header) {
		s.fail(0, "row", strings.Join(s.cells, ","), "want "+strconv.Itoa(len(s.header))+" columns")
	}
	return s.err == nil
}

func (s *sheet) row() bool {
	cells, err := s.r.Read()
	var bad *csv.ParseError
	switch {
	case err == nil:
		s.cells = cells
		return true
	case errors.Is(err, io.EOF):
	case errors.As(err, &bad):
		s.err = &records.ParseError{File: s.file, Line: bad.Line, Reason: bad.Err.Error()}
	default:
		s.err = &records.ParseError{File: s.file, Reason: err.Error()}
	}
	return false
}

// valueMax is how many bytes of a wrong value an error shows.
const valueMax = 60

// fail says what is wrong with a value.
func (s *sheet) fail(column int, what, value, reason string) {
	if s.err != nil {
		return
	}
	line, _ := s.r.FieldPos(column)
	if len(value) > valueMax {
		value = value[:valueMax] + "..."
	}
	s.err = &records.ParseError{File: s.file, Line: line, Value: what + " " + strconv.Quote(value), Reason: reason}
}

// text is a cell that may be empty.
func (s *sheet) text(column int) string { return strings.Clone(s.cells[column]) }

// name is a cell that is not.
func (s *sheet) name(column int) string {
	if s.cells[column] == "" {
		s.fail(column, s.header[column], "", "want a name")
	}
	return s.text(column)
}

// count is a number from 0.
func (s *sheet) count(column int) int {
	n, err := strconv.ParseUint(s.cells[column], 10, 31)
	if err != nil {
		s.fail(column, s.header[column], s.cells[column], "want a whole number from 0 to 2147483647")
	}
	return int(n)
}

// yes is yes or no.
func (s *sheet) yes(column int) bool { return s.one(column, "no", "yes") == "yes" }

// one is one of some words.
func (s *sheet) one(column int, words ...string) string {
	if !slices.Contains(words, s.cells[column]) {
		s.fail(column, s.header[column], s.cells[column], "not one of "+strings.Join(words, ", "))
	}
	return s.text(column)
}
