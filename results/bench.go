// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"
)

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
