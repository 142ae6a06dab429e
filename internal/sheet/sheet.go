// SPDX-License-Identifier: Apache-2.0

// Package sheet reads CSV files into structs. The tags of the fields name the columns and say what
// may stand there, so that a wrong cell is refused with file, line, column and value.
package sheet

import (
	"encoding"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
)

// Figure is a number that may be missing.
type Figure struct {
	Value float64
	Known bool
}

// checked is a row whose cells have a rule in common. Check names the column whose value breaks it,
// and why; "" for none.
type checked interface {
	Check() (column, reason string)
}

// column is where the cells of a column go.
type column struct {
	field int
	names []string // several for a map, which takes them all by their names
	rules []string
	at    []int // in the file, of each name; -1 for an optional column that is left out
}

// is tells whether the column has a rule.
func (c *column) is(rule string) bool { return slices.Contains(c.rules, rule) }

// Read reads the rows of a table with the columns that the fields of T name in any order, as
// `col:"NAME,RULE,RULE"`. The field's type says what may stand in a cell, the rules narrow or widen it:
//
//	string                    text; with maybe also none; with WORD|WORD one of these words
//	bool                      yes or no; with known whether the cell holds anything
//	int, int64                a whole number from 0 on; with positive from 1 on
//	float64                   a number above 0; with zero also 0; with maybe also none, which is 0
//	Figure                    a number from 0 on, or none
//	[]string                  words with blanks between them, or none
//	map[string]float64        numbers above 0, of several columns with blanks between their names
//	encoding.TextUnmarshaler  what it reads; with maybe also none
//
// Two rows must not agree in all columns with the rule key. A column with the rule optional may be
// missing. A field `col:"#"` is the number of the line. Errors that the text causes are
// *[inputs.ParseError].
func Read[T any](file string, r io.Reader) ([]T, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, readError(file, err)
	}
	columns, err := columnsOf(reflect.TypeFor[T](), file, header)
	if err != nil {
		return nil, err
	}
	var out []T
	seen := map[string]int{} // lines of subjects
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, readError(file, err)
		}
		line, _ := in.FieldPos(0)
		out = append(out, *new(T))
		if err := fill(&out[len(out)-1], columns, cells, file, line, seen); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, &inputs.ParseError{File: file, Line: 1, Reason: "there are no rows"}
	}
	return out, nil
}

// Must reads a table that comes with the program. A mistake in one is ours.
func Must[T any](file, text string) []T {
	rows, err := Read[T](file, strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return rows
}

// columnsOf holds a header against the tags of a struct.
func columnsOf(t reflect.Type, file string, header []string) (columns []column, err error) {
	var want []string
	found := 0
	for i := range t.NumField() {
		words := strings.Split(t.Field(i).Tag.Get("col"), ",")
		c := column{field: i, names: strings.Fields(words[0]), rules: words[1:]}
		for _, name := range c.names {
			at := slices.Index(header, name)
			c.at = append(c.at, at)
			switch {
			case name == "#" || slices.Contains(want, name):
				continue
			case at >= 0:
				found++
			case !c.is("optional"):
				found = math.MinInt
			}
			want = append(want, name)
		}
		if len(c.names) > 0 {
			columns = append(columns, c)
		}
	}
	if found != len(header) {
		return nil, &inputs.ParseError{File: file, Line: 1, Value: strconv.Quote(inputs.Clip(strings.Join(header, ","), shown)),
			Reason: "want the columns " + strings.Join(want, ",")}
	}
	return columns, nil
}

// fill sets the fields of a row.
func fill[T any](row *T, columns []column, cells []string, file string, line int, seen map[string]int) error {
	to := reflect.ValueOf(row).Elem()
	var subject []string
	for _, c := range columns {
		for i, name := range c.names {
			text := ""
			if c.at[i] >= 0 {
				text = cells[c.at[i]]
			}
			switch {
			case name == "#":
				to.Field(c.field).SetInt(int64(line))
				continue
			case c.at[i] < 0:
				continue
			case c.is("key"):
				subject = append(subject, text)
			}
			if reason := c.set(to.Field(c.field), name, text); reason != "" {
				return Wrong(file, line, name, text, reason)
			}
		}
	}
	if r, ok := any(row).(checked); ok {
		if name, reason := r.Check(); reason != "" {
			return Wrong(file, line, name, cellOf(columns, cells, name), reason)
		}
	}
	if key := strings.Join(subject, " "); key != "" {
		if first, ok := seen[key]; ok {
			return &inputs.ParseError{File: file, Line: line, Value: strconv.Quote(inputs.Clip(key, shown)),
				Reason: fmt.Sprintf("line %d is about the same", first)}
		}
		seen[key] = line
	}
	return nil
}

// cellOf is the text of a column by its name.
func cellOf(columns []column, cells []string, name string) string {
	for _, c := range columns {
		if i := slices.Index(c.names, name); i >= 0 && c.at[i] >= 0 {
			return cells[c.at[i]]
		}
	}
	return ""
}

// set sets a field to a cell; the reason is "" where it may stand there.
func (c *column) set(to reflect.Value, name, text string) (reason string) {
	if text == "" && c.is("maybe") {
		return ""
	}
	switch v := to.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		if err := v.UnmarshalText([]byte(text)); err != nil {
			return err.Error()
		}
	case *Figure:
		if text != "" {
			v.Value, reason = number(text, true)
			v.Known = true
		}
		if reason != "" {
			reason += ", or nothing"
		}
	case *map[string]float64:
		if *v == nil {
			*v = map[string]float64{}
		}
		(*v)[name], reason = number(text, false)
	case *float64:
		*v, reason = number(text, c.is("zero") || c.is("maybe"))
	case *[]string:
		*v = strings.Fields(text)
	case *bool:
		*v = text == "yes" || text != "" && c.is("known")
		if text != "yes" && text != "no" && !c.is("known") {
			reason = "want one of no, yes"
		}
	default:
		return c.setKind(to, text)
	}
	return reason
}

// setKind sets text and whole numbers, of any type that is made of them.
func (c *column) setKind(to reflect.Value, text string) (reason string) {
	if to.Kind() == reflect.String {
		to.SetString(text)
		for _, rule := range c.rules {
			if words := strings.Split(rule, "|"); len(words) > 1 && !slices.Contains(words, text) {
				return "want one of " + strings.Join(words, ", ")
			} else if len(words) > 1 {
				return ""
			}
		}
		if strings.TrimSpace(text) == "" {
			return "is missing"
		}
		return ""
	}
	least, bits := int64(0), 63
	if c.is("positive") {
		least = 1
	}
	if to.Kind() == reflect.Int {
		bits = 32 // 31 without the sign: two may be added on any machine
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if to.SetInt(n); err != nil || n < least {
		return fmt.Sprintf("want a whole number, %d or more", least)
	}
	return ""
}

// number reads a number above 0, or from 0 on.
func number(text string, zero bool) (v float64, reason string) {
	v, err := strconv.ParseFloat(text, 64)
	switch bad := err != nil || math.IsNaN(v) || math.IsInf(v, 0); {
	case zero && (bad || v < 0):
		reason = "want a number, 0 or more"
	case !zero && (bad || v <= 0):
		reason = "want a number above 0"
	}
	return v, reason
}

// Wrong says why a value of a column is refused.
func Wrong(file string, line int, column, value, reason string) error {
	return &inputs.ParseError{File: file, Line: line, Value: column + " " + strconv.Quote(inputs.Clip(value, shown)), Reason: reason}
}

// shown is how many bytes of a wrong value an error shows.
const shown = 60

// readError words an error of the CSV reader.
func readError(file string, err error) error {
	var p *csv.ParseError
	switch {
	case errors.As(err, &p):
		return &inputs.ParseError{File: file, Line: p.Line, Reason: p.Err.Error()}
	case errors.Is(err, io.EOF):
		return &inputs.ParseError{File: file, Line: 1, Reason: "the file is empty"}
	}
	return fmt.Errorf("read %s: %w", file, err)
}
