// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/textpoke/textpoke/internal/spelling"
)

const (
	// maxLine bounds one line: 4,096 CPUs need 45 kB.
	maxLine = 1 << 20
	// maxText bounds a whole text, so that a wrong file name cannot fill memory.
	maxText = 64 << 20
)

// scanned is a row as it was found, with the marks that tell its side.
type scanned struct {
	row     Row
	cpus    []int // of the header above it; nil without one
	depth   int   // quote marks in front of it
	mark    byte  // '<', '-', '+' or 0
	section int   // counts the diff commands above it

	width   int  // of its longest line so far
	wrapped bool // its description went on to another line
}

// scanner turns lines into rows.
type scanner struct {
	file    string
	rows    []*scanned
	open    *scanned // the row that the next line may continue
	header  []int
	fresh   bool // the line before was a header, which may go on
	section int
}

// scan reads all rows of a text.
func scan(file string, r io.Reader) ([]*scanned, error) {
	s := &scanner{file: file}
	in := bufio.NewReaderSize(io.LimitReader(r, maxText+1), 64<<10)
	for no, total := 1, 0; ; no++ {
		text, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			if errors.Is(err, errLongLine) {
				return nil, s.fail(no, text, "the line is longer than 1 MiB")
			}
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if total += len(text); total > maxText {
			return nil, s.fail(no, "", "the text is larger than 64 MiB")
		}
		if text != "" {
			if err := s.line(no, text); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return s.rows, s.end(no, text, total)
		}
	}
}

var errLongLine = errors.New("line too long")

// readLine reads a line with its end. A line that is too long comes back cut.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return string(line[:maxLine]), errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(line), err
		}
	}
}

func (s *scanner) fail(line int, value, reason string) error {
	return wrong(s.file, line, value, reason)
}

// end checks what only the end of the text shows.
func (s *scanner) end(no int, last string, total int) error {
	if total == 0 {
		return s.fail(0, "", "the text is empty")
	}
	// A row that stops after its first count, without even an end of line, is no
	// row that counts for the whole machine: it was cut off.
	if r := s.open; r != nil && last != "" && len(r.cpus) > 1 && len(r.row.Counts) == 1 {
		return s.fail(no, r.row.Name, "the text ends in the middle of this row")
	}
	if err := s.close(); err != nil {
		return err
	}
	if len(s.rows) == 0 {
		return s.fail(0, "", `there are no interrupt rows, such as "CAL: 2342 2347"`)
	}
	return nil
}

// line takes one line, its end included.
func (s *scanner) line(no int, text string) error {
	text = strings.TrimRight(text, "\r\n")
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return s.fail(no, text[i:i+1], "a control character: this is not text")
		}
	}
	depth, mark, body := cutMarks(text)
	fresh := s.fresh
	s.fresh = false
	if name, rest, ok := cutRow(body); ok {
		if err := s.close(); err != nil {
			return err
		}
		s.open = &scanned{
			row:  Row{Name: name, Line: no},
			cpus: s.header, depth: depth, mark: mark, section: s.section,
		}
		return s.take(no, rest, len(text))
	}
	if done, err := s.extend(no, body, len(text)); done || err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	if isHeader(body) {
		return s.takeHeader(no, body, fresh)
	}
	if isCommand(body) {
		s.section++
		s.header = nil
	}
	return nil
}

// takeHeader reads a header, or the next line of one.
func (s *scanner) takeHeader(no int, body string, fresh bool) error {
	cpus, bad, reason := headerCPUs(body)
	if bad != "" {
		return s.fail(no, bad, reason)
	}
	if fresh && cpus[0] > s.header[len(s.header)-1] {
		cpus = append(slices.Clone(s.header), cpus...)
	}
	s.header, s.fresh = cpus, true
	return nil
}

// extend gives a line to the open row if it continues it.
func (s *scanner) extend(no int, body string, width int) (bool, error) {
	r := s.open
	if r == nil || body == "" {
		return false, nil
	}
	full := r.cpus != nil && len(r.row.Counts) >= len(r.cpus)
	if startsCounts(body) {
		if full || r.row.Description != "" {
			return false, nil
		}
		return true, s.take(no, body, width)
	}
	complete := full || r.cpus == nil
	if !complete || r.wrapped || r.width < wrapColumn || isHeader(body) || isCommand(body) || !isDescriptionRest(body) {
		return false, nil
	}
	r.wrapped = true
	return true, s.describe(no, strings.TrimSpace(r.row.Description+" "+body))
}

// take adds counts, and what follows them, to the open row.
func (s *scanner) take(no int, text string, width int) error {
	r := s.open
	r.width = max(r.width, width)
	for {
		first, rest := cutField(text)
		full := r.cpus != nil && len(r.row.Counts) == len(r.cpus)
		if full && number.MatchString(first) {
			return s.fail(no, first, fmt.Sprintf("row %s has more counts than the header's %s", r.row.Name,
				spelling.Several(len(r.cpus), "CPU")))
		}
		if full || !startsAsNumber(first) {
			return s.describe(no, strings.TrimSpace(text))
		}
		n, reason := parseCount(first)
		if reason != "" {
			return s.fail(no, first, "row "+r.row.Name+": "+reason)
		}
		r.row.Counts = append(r.row.Counts, n)
		text = rest
	}
}

func (s *scanner) describe(no int, text string) error {
	if !utf8.ValidString(text) {
		return s.fail(no, text, "row "+s.open.row.Name+": the description is not UTF-8")
	}
	s.open.row.Description = text
	return nil
}

func parseCount(s string) (n int64, reason string) {
	switch n, err := strconv.ParseInt(s, 10, 64); {
	case err == nil && n >= 0 && s[0] != '-':
		return n, ""
	case !number.MatchString(s):
		return 0, "this is not a count"
	case s[0] == '-':
		return 0, "a count cannot be negative"
	default:
		return 0, fmt.Sprintf("a count cannot be larger than %d", int64(math.MaxInt64))
	}
}

// close ends the open row.
func (s *scanner) close() error {
	r := s.open
	if r == nil {
		return nil
	}
	s.open = nil
	if have, want := len(r.row.Counts), len(r.cpus); r.cpus != nil && have != want &&
		!(have == 1 && r.row.Description == "") {
		return s.fail(r.row.Line, r.row.Name, fmt.Sprintf("the row has %s, the header %s", spelling.Several(have, "count"),
			spelling.Several(want, "CPU")))
	}
	s.rows = append(s.rows, r)
	return nil
}
