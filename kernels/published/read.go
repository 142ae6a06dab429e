// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
)

//go:embed data/*.csv
var data embed.FS

// Set is one published table with rows of type T.
type Set[T any] struct {
	Name    string // of the embedded file, without .csv
	Source  string // of all its rows; "" where each row names its own
	columns []string
	parse   func(*cells) T
	key     func(T) string // a row's subject; two rows with one subject contradict each other. nil: any may repeat
}

// maxFile is how long a table may be, in bytes.
const maxFile = 16 << 20

// Read reads the table: that of a file, or, for "", the one that comes with the
// program. Errors are a *ParseError or about the file as a whole.
func (s *Set[T]) Read(file string) ([]T, error) {
	if file == "" {
		f, err := data.Open("data/" + s.Name + ".csv")
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return s.read(s.Name, f)
	}
	text, err := inputs.Read(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return s.read(file, bytes.NewReader(text))
}

// read reads the table from r, which errors call name.
func (s *Set[T]) read(name string, r io.Reader) ([]T, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, wrap(name, err)
	}
	if !s.takes(header) {
		return nil, &ParseError{name, 1, strconv.Quote(clip(strings.Join(header, ","))), "want the columns " +
			strings.Join(s.columns, ",")}
	}
	var out []T
	lines := map[string]int{}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrap(name, err)
		}
		line, _ := in.FieldPos(0)
		c := &cells{name: name, line: line, columns: header, record: record}
		row := s.parse(c)
		if c.err != nil {
			return nil, c.err
		}
		if s.key != nil {
			key := s.key(row)
			if first, ok := lines[key]; ok {
				return nil, &ParseError{name, line, strconv.Quote(clip(key)), fmt.Sprintf("line %d is about the same", first)}
			}
			lines[key] = line
		}
		out = append(out, row)
	}
	if len(out) == 0 {
		return nil, &ParseError{name, 1, "", "there are no rows"}
	}
	return out, nil
}

// takes tells whether a header has the table's columns, in whatever order.
func (s *Set[T]) takes(header []string) bool {
	n := 0
	for _, column := range s.columns {
		switch {
		case slices.Contains(header, column):
			n++
		case column != sourceColumn:
			return false
		}
	}
	return n == len(header)
}

// sourceColumn is where a row says where it is from. A table of one's own may
// leave it out.
const sourceColumn = "source"

// ParseError says where a table stops making sense.
type ParseError struct {
	File   string
	Line   int
	Value  string // quoted, with its column; may be ""
	Reason string
}

func (e *ParseError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Value, e.Reason)
}

// wrap words an error of the CSV reader.
func wrap(name string, err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return &ParseError{name, p.Line, "", p.Err.Error()}
	}
	if errors.Is(err, io.EOF) {
		return &ParseError{name, 1, "", "the file is empty"}
	}
	return fmt.Errorf("published figures: read %s: %w", name, err)
}

// clip cuts a value to what an error message shows.
func clip(s string) string { return s[:min(len(s), 60)] }

// Figure is a number that may be missing.
type Figure struct {
	Value float64
	Known bool
}

// cells is one row on its way. The first cell that is wrong is the error.
type cells struct {
	name    string
	line    int
	columns []string
	record  []string
	err     error
}

func (c *cells) text(column string) string {
	i := slices.Index(c.columns, column)
	if i < 0 {
		return "" // the source, left out
	}
	return c.record[i]
}

// source is where the row is from: "" where the table has no such column.
func (c *cells) source() string {
	if !slices.Contains(c.columns, sourceColumn) {
		return ""
	}
	return c.words(sourceColumn)
}

func (c *cells) fail(column, reason string) {
	if c.err == nil {
		c.err = &ParseError{c.name, c.line, column + " " + strconv.Quote(clip(c.text(column))), reason}
	}
}

// words is text that must not be missing.
func (c *cells) words(column string) string {
	s := c.text(column)
	if strings.TrimSpace(s) == "" {
		c.fail(column, "is missing")
	}
	return s
}

// oneOf is one of some words.
func (c *cells) oneOf(column string, valid ...string) string {
	s := c.text(column)
	if !slices.Contains(valid, s) {
		c.fail(column, "want one of "+strings.Join(valid, ", "))
	}
	return s
}

// count is a whole number, 0 or more.
func (c *cells) count(column string) int64 {
	n, err := strconv.ParseInt(c.text(column), 10, 63)
	if err != nil || n < 0 {
		c.fail(column, "want a whole number, 0 or more")
	}
	return n
}

// positive is a whole number, 1 or more.
func (c *cells) positive(column string) int64 {
	n := c.count(column)
	if n == 0 {
		c.fail(column, "want a whole number, 1 or more")
	}
	return n
}

// decimal is a decimal number of either sign.
func (c *cells) decimal(column string) Decimal {
	d, ok := parseDecimal(c.text(column))
	if !ok {
		c.fail(column, fmt.Sprintf("want a decimal number, with up to %d digits behind the point", maxPlaces))
	}
	return d
}

// above0 is a number above 0.
func (c *cells) above0(column string) float64 {
	f := c.figure(column)
	if f.Value <= 0 {
		c.fail(column, "want a number above 0")
	}
	return f.Value
}

// figure is a number, 0 or more, that may be missing.
func (c *cells) figure(column string) Figure {
	s := c.text(column)
	if s == "" {
		return Figure{}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		c.fail(column, "want a number, 0 or more, or nothing")
	}
	return Figure{v, true}
}
