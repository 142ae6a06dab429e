package records

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// csvHeader is the first line of CSV tables.
const csvHeader = "address,symbol,module,group"

// readCSV reads rows of address, symbol, module, group. Groups are numbers that
// never descend; each number is one group, and its addresses ascend. When no
// row has one, the kernel's rule makes the groups.
func readCSV(l *lines) (*Table, error) {
	b := newBuilder(l.file)
	if err := readCSVHeader(l, b); err != nil {
		return nil, err
	}
	c := csvRows{b: b}
	for {
		line, err := l.next()
		if err == io.EOF {
			c.endGroup()
			return b.finish("")
		}
		if err != nil {
			return nil, err
		}
		b.line = l.n
		if len(bytes.TrimSpace(line)) == 0 {
			b.skip()
			continue
		}
		if err := c.row(line); err != nil {
			return nil, err
		}
	}
}

func readCSVHeader(l *lines, b *builder) error {
	for {
		line, err := l.next()
		if err == io.EOF {
			return b.fail("", "no header "+csvHeader)
		}
		if err != nil {
			return err
		}
		b.line, b.header = l.n, l.n
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0:
		case string(line) == csvHeader:
			return nil
		default:
			return b.fail(quoted("header", line), "not "+csvHeader)
		}
	}
}

// csvRows adds rows to a builder and follows their groups.
type csvRows struct {
	b       *builder
	grouped bool // rows have groups
	group   uint64
	first   int // record that the current group starts with
	fields  [4][]byte
}

func (c *csvRows) row(line []byte) error {
	b := c.b
	if reason := splitCSV(line, &c.fields); reason != "" {
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
	return b.add(a, symbol, module)
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
		return b.fail(quoted("address", a.String()), fmt.Sprintf("below %s before it; addresses ascend inside a group", b.addrs[n-1]))
	}
	return nil
}

func (c *csvRows) endGroup() {
	if n := len(c.b.addrs); c.grouped && n > c.first {
		c.b.groups = append(c.b.groups, Group{c.first, n})
		c.first = n
	}
}

// splitCSV cuts a row into its four fields. Quotes around a field, doubled
// inside, are understood as in RFC 4180, but for line ends in fields.
func splitCSV(line []byte, fields *[4][]byte) (reason string) {
	for i := range fields {
		var f []byte
		var ok bool
		if len(line) > 0 && line[0] == '"' {
			if f, line, ok = unquoteCSV(line); !ok {
				return "a quote is not closed, or not followed by a comma"
			}
		} else {
			end := bytes.IndexByte(line, ',')
			if end < 0 {
				end = len(line)
			}
			f, line = line[:end], line[end:]
		}
		fields[i] = f
		switch last := i == len(fields)-1; {
		case last && len(line) > 0:
			return "more than the 4 fields " + csvHeader
		case !last && len(line) == 0:
			return fmt.Sprintf("%d fields instead of the 4 fields %s", i+1, csvHeader)
		case !last:
			line = line[1:] // the comma
		}
	}
	return ""
}

// unquoteCSV takes a quoted field off the front of a row.
func unquoteCSV(line []byte) (f, rest []byte, ok bool) {
	for i := 1; i < len(line); i++ {
		if line[i] != '"' {
			f = append(f, line[i])
			continue
		}
		if i+1 < len(line) && line[i+1] == '"' {
			f = append(f, '"')
			i++
			continue
		}
		rest = line[i+1:]
		return f, rest, len(rest) == 0 || rest[0] == ','
	}
	return nil, nil, false
}

// WriteCSV writes the table, groups and all, so that Read gives it back.
func WriteCSV(w io.Writer, t *Table) error {
	bw := bufio.NewWriterSize(w, 64<<10)
	bw.WriteString(csvHeader + "\n") // the writer keeps the first error
	var line []byte
	for k, g := range t.Groups() {
		for i := g.First; i < g.Last; i++ {
			line = append(line[:0], "0x"...)
			line = strconv.AppendUint(line, uint64(t.Addr(i)), 16)
			line = appendCSV(append(line, ','), t.Symbol(i))
			line = appendCSV(append(line, ','), t.Module(i))
			line = strconv.AppendInt(append(line, ','), int64(k), 10)
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
	line = append(line, '"')
	for i := range len(s) {
		if s[i] == '"' {
			line = append(line, '"')
		}
		line = append(line, s[i])
	}
	return append(line, '"')
}
