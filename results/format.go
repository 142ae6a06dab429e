// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Format is how a table looks on standard output. It implements the interface
// of command-line flag packages (Set, String, Type).
type Format string

// The formats. The zero Format is FormatTable.
const (
	FormatTable Format = "table"
	FormatCSV   Format = "csv"
	FormatJSON  Format = "json"
	FormatBench Format = "benchfmt"
)

// Formats names the valid formats, the default first.
func Formats() []string {
	return []string{string(FormatTable), string(FormatCSV), string(FormatJSON), string(FormatBench)}
}

// String is the format's name.
func (f Format) String() string {
	if f == "" {
		return string(FormatTable)
	}
	return string(f)
}

// Set reads the format from a flag's value, as Formats spells it.
func (f *Format) Set(s string) error {
	if !slices.Contains(Formats(), s) {
		return spelling.NotOneOf(s, Formats())
	}
	*f = Format(s)
	return nil
}

// Type names the flag's kind of value in help texts.
func (*Format) Type() string { return "format" }

// RowWriter takes rows as they finish. Close must be called once, also for a
// run that was cut short: it ends the JSON array, or prints the table. It does
// not close the writer below.
type RowWriter struct {
	columns []Column
	row     func([]Value) error
	end     func() error
}

// Add writes one row.
func (r *RowWriter) Add(row []Value) error {
	if err := checkRow(r.columns, row); err != nil {
		return err
	}
	return r.row(row)
}

// Close writes what only the end of the rows allows.
func (r *RowWriter) Close() error { return r.end() }

// NewWriter starts a stream of rows in the given format, with this look where it is a table for people. CSV and JSON
// rows are written when they are added; a table needs all rows to know its widths, benchmarks to know what they have
// in common, and both appear when the writer is closed.
func (l Look) NewWriter(w io.Writer, f Format, columns []Column) (*RowWriter, error) {
	if err := checkColumns(columns); err != nil {
		return nil, err
	}
	kept := Table{Name: l.Name, Columns: columns}
	r := &RowWriter{columns: columns, row: func(row []Value) error {
		kept.Rows = append(kept.Rows, slices.Clone(row))
		return nil
	}}
	switch f.String() {
	case string(FormatTable):
		r.end = func() error {
			if _, err := io.WriteString(w, l.render(kept)); err != nil {
				return fmt.Errorf("write table: %w", err)
			}
			return nil
		}
	case string(FormatBench):
		r.end = func() error { return writeBench(w, kept) }
	case string(FormatCSV):
		return r, r.csv(w)
	case string(FormatJSON):
		return r, r.json(w)
	default:
		return nil, f.Set(string(f))
	}
	return r, nil
}

// Write writes the whole table in the given format.
func Write(w io.Writer, f Format, t Table) error { return Look{Name: t.Name}.Write(w, f, t) }

// Write writes the whole table in the given format, with this look where it is for people. Nothing of a table that is
// not well formed is written.
func (l Look) Write(w io.Writer, f Format, t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	r, err := l.NewWriter(w, f, t.Columns)
	if err != nil {
		return err
	}
	for _, row := range t.Rows {
		if err := r.row(row); err != nil {
			return err
		}
	}
	return r.Close()
}

// csv writes the header. Each row is complete in the underlying writer when it was added.
func (r *RowWriter) csv(w io.Writer) error {
	out, record := csv.NewWriter(w), make([]string, len(r.columns))
	flush := func() (err error) {
		if len(record) == 1 && record[0] == "" {
			// A blank line is no row to readers of CSV; a quoted nothing is.
			_, err = io.WriteString(w, "\"\"\n")
		} else if err = out.Write(record); err == nil {
			out.Flush()
			err = out.Error()
		}
		if err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
		return nil
	}
	r.row = func(row []Value) error {
		for i, v := range row {
			record[i] = v.String()
		}
		return flush()
	}
	r.end = func() error { return nil }
	for i, column := range r.columns {
		record[i] = column.Name
	}
	return flush()
}

// WriteCSV writes the whole table as CSV, the header first.
func WriteCSV(w io.Writer, t Table) error { return Write(w, FormatCSV, t) }

// json begins an array of objects, one object a line, whose members are in the order of the columns; an empty cell is
// null.
func (r *RowWriter) json(w io.Writer) error {
	put := func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		return nil
	}
	between, end := "\n{", "]\n"
	r.row = func(row []Value) error {
		// One write for a row, so that a reader never sees half an object.
		b := bytes.NewBufferString(between)
		for i, v := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			cell, err := v.MarshalJSON()
			if err != nil {
				return fmt.Errorf("%w: column %s: %w", ErrRow, r.columns[i].Name, err)
			}
			fmt.Fprintf(b, "%q:%s", r.columns[i].Name, cell)
		}
		b.WriteByte('}')
		between, end = ",\n{", "\n]\n"
		return put(b.Bytes())
	}
	r.end = func() error { return put([]byte(end)) }
	return put([]byte("["))
}

// ReadCSV reads what [WriteCSV] wrote of a table with these columns. A text that is empty
// comes back as [Empty].
func ReadCSV(r io.Reader, name string, columns []Column) (Table, error) {
	t := Table{Name: name, Columns: columns}
	records, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return t, fmt.Errorf("read %s: %w", name, err)
	}
	header := spelling.Each(columns, func(c Column) string { return c.Name })
	if len(records) == 0 || !slices.Equal(records[0], header) {
		return t, fmt.Errorf("read %s: it has other columns", name)
	}
	for i, record := range records[1:] {
		row := make([]Value, len(columns))
		for k, text := range record {
			if row[k], err = columns[k].Kind.parse(text); err != nil {
				return t, fmt.Errorf("read %s: row %d: column %s: %w", name, i+1, columns[k].Name, err)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// parse reads a cell.
func (k Kind) parse(text string) (Value, error) {
	if text == "" {
		return Empty, nil
	}
	if k == Text {
		return String(text), nil
	}
	if k == Boolean {
		b, err := strconv.ParseBool(text)
		return Bool(b), err
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && Int(i).String() == text {
		return Int(i), nil
	}
	u, err := strconv.ParseUint(text, 10, 64)
	if err == nil || k == Integer {
		return Uint(u), err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil {
		err = Float(f).check()
	}
	return Float(f), err
}

// writeBench writes the table as results of Go benchmarks
// (https://golang.org/design/14313-benchmark-format), which benchstat compares: a line a row, named
// by its axes, with a value for each other number. Cells that all rows share stand above them as
// key: value. Rows of one name, such as those of several seeds, are samples of one benchmark.
// Columns that are details, and rows without a number, are left out.
func writeBench(w io.Writer, t Table) error {
	var text bytes.Buffer
	out := benchfmt.NewWriter(&text)
	for _, row := range t.Rows {
		r := t.benchmark(row)
		if len(r.Values) == 0 {
			continue
		}
		if err := out.Write(r); err != nil {
			return fmt.Errorf("write benchmarks: %w", err)
		}
	}
	if _, err := text.WriteTo(w); err != nil {
		return fmt.Errorf("write benchmarks: %w", err)
	}
	return nil
}

// Figure tells whether the column's numbers are what is compared, and do not say what was
// asked for.
func (c Column) Figure() bool { return !c.Axis && (c.Kind == Integer || c.Kind == Number) }

// benchmark is a row as the result of a benchmark.
func (t Table) benchmark(row []Value) *benchfmt.Result {
	r := &benchfmt.Result{Iters: 1}
	name := camel(t.Name)
	for i, c := range t.Columns {
		f, number := row[i].Number()
		switch {
		case c.Detail || row[i].IsEmpty():
		case c.Figure():
			if number {
				r.Values = append(r.Values, benchfmt.Value{Value: f, Unit: c.benchUnit()})
			}
		case c.Name == "seed": // its rows are samples
		case t.constant(i):
			said := benchWord(row[i].String(), " ")
			r.Config = append(r.Config, benchfmt.Config{Key: c.Name, Value: []byte(said), File: true})
		default:
			name += "/" + c.Name + "=" + benchWord(strings.ReplaceAll(row[i].String(), "/", "_"), "_")
		}
	}
	if processors.MatchString(name) {
		name += "-1" // or the end would be taken for a number of processors
	}
	r.Name = benchfmt.Name(name)
	return r
}

var processors = regexp.MustCompile(`-[0-9]+$`)

// constant tells whether all rows have the same in a column.
func (t Table) constant(c int) bool {
	for _, row := range t.Rows {
		if row[c] != t.Rows[0][c] {
			return false
		}
	}
	return true
}

// benchUnit is the unit of a column's values: update-ns, buffer-B, rounds.
func (c Column) benchUnit() string {
	if stem, is := strings.CutSuffix(c.Name, "_bytes"); is {
		return strings.ReplaceAll(stem, "_", "-") + "-B"
	}
	return strings.ReplaceAll(c.Name, "_", "-")
}

// benchWord is text without what separates words and lines.
func benchWord(s, blank string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return rune(blank[0])
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// camel is a name as benchmarks have it: KernelMeasure.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == ' ' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
