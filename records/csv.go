// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
)

// csvHeader is the first line of CSV tables; where records have lengths of their own
// one more column follows.
const (
	csvHeader  = "address,symbol,module,group"
	csvLengths = ",length"
)

// readCSV reads rows of address, symbol, module, group and perhaps length: bytes of
// the site, from 1 to 8, or nothing for as many as is usual. Groups are numbers that
// never descend; each number is one group, and its addresses ascend. When no
// row has one, the kernel's rule makes the groups.
func readCSV(l *lines) (*Table, error) {
	b := newBuilder(l.file)
	n, err := readCSVHeader(l, b)
	if err != nil {
		return nil, err
	}
	c := csvRows{b: b, n: n}
	if err := b.each(l, c.row); err != nil {
		return nil, err
	}
	c.endGroup()
	return b.finish("")
}

// readCSVHeader tells how many columns there are.
func readCSVHeader(l *lines, b *builder) (int, error) {
	for {
		line, err := l.next()
		if err == io.EOF {
			return 0, b.fail("", "no header "+csvHeader)
		}
		if err != nil {
			return 0, err
		}
		b.line, b.header = l.n, l.n
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0:
		case string(line) == csvHeader:
			return 4, nil
		case string(line) == csvHeader+csvLengths:
			return 5, nil
		default:
			return 0, b.fail(quoted("header", line), "not "+csvHeader)
		}
	}
}

// csvRows adds rows to a builder and follows their groups.
type csvRows struct {
	b       *builder
	grouped bool // rows have groups
	group   uint64
	first   int // record that the current group starts with
	n       int // columns
	fields  [5][]byte
}

func (c *csvRows) row(line []byte) error {
	b := c.b
	if reason := splitCSV(line, c.fields[:c.n]); reason != "" {
		return b.fail(quoted("row", line), reason)
	}
	addr, symbol, module, group := c.fields[0], c.fields[1], c.fields[2], c.fields[3]
	a, reason := parseHex(addr)
	if reason != "" {
		return b.fail(quoted("address", addr), reason)
	}
	if err := c.join(a, group); err != nil {
		return err
	}
	if err := b.add(a, symbol, module); err != nil || c.n < 5 || len(c.fields[4]) == 0 {
		return err
	}
	length := c.fields[4]
	if len(length) > 1 || length[0] < '1' || length[0] > '8' {
		return b.fail(quoted("length", length), "want the bytes of the site, 1 to 8, or nothing")
	}
	b.lengths = append(b.lengths, make([]uint8, len(b.addrs)-len(b.lengths))...)
	b.lengths[len(b.addrs)-1] = length[0] - '0'
	return nil
}

// join puts the record about to be added into its group.
func (c *csvRows) join(a Addr, group []byte) error {
	b, n := c.b, len(c.b.addrs)
	if n > 0 && c.grouped != (len(group) > 0) {
		return b.fail(quoted("group", group), "some rows have a group and some have none")
	}
	if len(group) == 0 {
		return nil
	}
	g, err := strconv.ParseUint(string(group), 10, 63)
	if err != nil {
		return b.fail(quoted("group", group), "not a number of a group")
	}
	switch {
	case n == 0:
		c.grouped, c.group = true, g
	case g < c.group:
		return b.fail(fmt.Sprintf("group %d", g), fmt.Sprintf("stands behind group %d; groups follow one another", c.group))
	case g > c.group:
		c.endGroup()
		c.group = g
	case a < b.addrs[n-1]:
		return b.fail(quoted("address", a.String()), fmt.Sprintf("below %s before it; addresses ascend inside a group",
			b.addrs[n-1]))
	}
	return nil
}

func (c *csvRows) endGroup() {
	if n := len(c.b.addrs); c.grouped && n > c.first {
		c.b.groups = append(c.b.groups, Group{c.first, n})
		c.first = n
	}
}

// splitCSV cuts a row into its fields, four or five. A row with quotes is read as RFC 4180 says, but
// for line ends in fields.
func splitCSV(line []byte, fields [][]byte) (reason string) {
	n := 0
	take := func(f []byte) {
		if n < len(fields) {
			fields[n] = f
		}
		n++
	}
	if bytes.IndexByte(line, '"') < 0 {
		for f := range bytes.SplitSeq(line, []byte(",")) {
			take(f)
		}
	} else {
		cells, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return "a quote is not closed, or not followed by a comma"
		}
		for _, cell := range cells {
			take([]byte(cell))
		}
	}
	header := csvHeader
	if len(fields) == 5 {
		header += csvLengths
	}
	switch {
	case n > len(fields):
		return fmt.Sprintf("more than the %d fields %s", len(fields), header)
	case n < len(fields):
		return fmt.Sprintf("%d fields instead of the %d fields %s", n, len(fields), header)
	}
	return ""
}

// WriteCSV writes the table, groups and all, so that Read gives it back.
func WriteCSV(w io.Writer, t *Table) error {
	bw := bufio.NewWriterSize(w, 64<<10)
	header := csvHeader + "\n"
	if t.HasLengths() {
		header = csvHeader + csvLengths + "\n"
	}
	bw.WriteString(header) // the writer keeps the first error
	var line []byte
	for k, g := range t.Groups() {
		for i := g.First; i < g.Last; i++ {
			line = append(line[:0], "0x"...)
			line = strconv.AppendUint(line, uint64(t.Addr(i)), 16)
			line = appendCSV(append(line, ','), t.Symbol(i))
			line = appendCSV(append(line, ','), t.Module(i))
			line = strconv.AppendInt(append(line, ','), int64(k), 10)
			if t.HasLengths() {
				if line = append(line, ','); t.Length(i) > 0 {
					line = strconv.AppendInt(line, int64(t.Length(i)), 10)
				}
			}
			line = append(line, '\n')
			if _, err := bw.Write(line); err != nil {
				return fmt.Errorf("write CSV: %w", err)
			}
		}
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// appendCSV quotes what needs it: C++ symbols may hold commas.
func appendCSV(line []byte, s string) []byte {
	if !strings.ContainsAny(s, `,"`) {
		return append(line, s...)
	}
	return append(append(append(line, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}

// MaxLine bounds a line of text in bytes, the end of the line included.
const MaxLine = 64 << 10

// lines hands out a text line by line without keeping it.
type lines struct {
	ctx  context.Context
	file string
	r    *bufio.Reader
	n    int // line last handed out, counted from 1
}

// next is the next line without its end, which may be CR LF. The bytes are
// valid until the next call. It fails with io.EOF at the end, with a
// *ParseError or with the context's error.
func (l *lines) next() ([]byte, error) {
	if l.n%4096 == 0 && l.ctx.Err() != nil {
		return nil, fmt.Errorf("read %s: %w", l.file, l.ctx.Err())
	}
	line, err := l.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, l.fail("", fmt.Sprintf("line longer than %d bytes", MaxLine))
	case err != nil && err != io.EOF:
		return nil, err
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	}
	l.n++
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// each gives all lines to take, until it fails.
func (l *lines) each(take func(line []byte) error) error {
	for {
		line, err := l.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = take(line)
		}
		if err != nil {
			return err
		}
	}
}

// each gives all lines but blank ones to add, which adds a record or passes over the line.
func (b *builder) each(l *lines, add func(line []byte) error) error {
	return l.each(func(line []byte) error {
		b.line = l.n
		if len(bytes.TrimSpace(line)) == 0 {
			b.skip()
			return nil
		}
		return add(line)
	})
}

// fail makes an error at the line after the last one handed out.
func (l *lines) fail(value, reason string) error {
	return &ParseError{File: l.file, Line: l.n + 1, Value: value, Reason: reason}
}

// field cuts the first field off a line of fields separated by blanks.
func field(line []byte) (head, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, nil
}

// bracketed takes the brackets off a module's name.
func bracketed(f []byte) (name []byte, ok bool) {
	if len(f) < 3 || f[0] != '[' || f[len(f)-1] != ']' {
		return nil, false
	}
	return f[1 : len(f)-1], true
}

// parseHex reads a hexadecimal address, with or without 0x. The reason says
// what is wrong with it, "" if nothing is.
func parseHex(s []byte) (a Addr, reason string) {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		s = s[2:]
	}
	n, err := strconv.ParseUint(string(s), 16, 64)
	switch {
	case len(s) == 0:
		return 0, "missing"
	case errors.Is(err, strconv.ErrRange):
		return 0, "more than 64 bits"
	case err != nil:
		return 0, "not hexadecimal"
	}
	return Addr(n), ""
}

// ParseError says where an input stops making sense: file, line, value, reason.
type ParseError = inputs.ParseError

// quotedMax is how many bytes of a wrong value an error message shows.
const quotedMax = 60

// quoted names a value in an error: address "zz". Long values are cut, and
// bytes that would upset a terminal are escaped.
func quoted[T string | []byte](what string, v T) string {
	s := string(v[:min(len(v), quotedMax)])
	q := strconv.Quote(s)
	if len(v) > quotedMax {
		q = q[:len(q)-1] + `..."`
	}
	return what + " " + q
}
