// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
)

// columns begin every file. In a line that states a fact about the machine the
// value stands in the second, and the others are missing.
var columns = []string{"quantity", "value", "unit", "low", "high", "basis", "source"}

// MaxBytes bounds a file; one with a page of source for each quantity is far
// below that.
const MaxBytes = 1 << 20

// Open opens a built-in calibration, or a file. A file that calls itself as a
// built-in one does must hold the same, so that results cannot be mistaken.
func Open(nameOrPath string) (*Calibration, error) {
	if c := builtin(nameOrPath); c != nil {
		return c, nil
	}
	f, err := inputs.Open(nameOrPath)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("calibration %q: no such file, and %w", nameOrPath, spelling.NotOneOf(nameOrPath, Names()))
	}
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	defer f.Close()
	c, err := Read(nameOrPath, f)
	if err != nil {
		return nil, err
	}
	if b := builtin(c.Name); b != nil && b.Hash() != c.Hash() {
		return nil, fmt.Errorf("%s: name %q is that of a built-in calibration, which holds something else: call it otherwise",
			nameOrPath, c.Name)
	}
	return c, nil
}

// Read reads a calibration. Errors begin with name, which is the file's, and the line. One missing
// or wrong quantity makes the whole file wrong.
func Read(name string, r io.Reader) (*Calibration, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read calibration %s: %w", name, err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s: longer than %d bytes: no calibration", name, MaxBytes)
	}
	p := &parser{file: name, facts: map[string]bool{}, entries: map[string]Entry{}}
	p.csv = csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	p.csv.Comment = '#'
	p.csv.FieldsPerRecord = -1
	p.csv.TrimLeadingSpace = true
	return p.read()
}

// parser reads one file.
type parser struct {
	file    string
	csv     *csv.Reader
	c       Calibration
	facts   map[string]bool
	entries map[string]Entry // by quantity
}

func (p *parser) read() (*Calibration, error) {
	for first := true; ; first = false {
		cells, err := p.csv.Read()
		if err == io.EOF {
			return p.finish()
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("%s:%d: %w", p.file, bad.Line, bad.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("read calibration %s: %w", p.file, err)
		}
		for i := range cells {
			if cells[i] = strings.TrimSpace(cells[i]); strings.ContainsFunc(cells[i], unicode.IsControl) {
				return nil, p.errorf("%.40q: a line break or another control character in a cell", cells[i])
			}
		}
		if first {
			if !slices.Equal(cells, columns) {
				return nil, p.errorf("%q: want the first line to be %s", strings.Join(cells, ","), strings.Join(columns, ","))
			}
			continue
		}
		if err := p.line(cells); err != nil {
			return nil, err
		}
	}
}

// errorf is an error about the line that was read last.
func (p *parser) errorf(format string, args ...any) error {
	line, _ := p.csv.FieldPos(0)
	return fmt.Errorf("%s:%d: %w", p.file, line, fmt.Errorf(format, args...))
}

// line reads a fact or a quantity.
func (p *parser) line(cells []string) error {
	if f, ok := facts[cells[0]]; ok {
		return p.fact(f, cells)
	}
	q := ByName(cells[0])
	if q == nil {
		return p.errorf("%q: no such quantity%s", cells[0], spelling.Hint(cells[0], words()))
	}
	if _, ok := p.entries[q.Name]; ok {
		return p.errorf("%s: stands there twice", q.Name)
	}
	if len(cells) != len(columns) {
		return p.errorf("%s: %d cells, want %d: %s", q.Name, len(cells), len(columns), strings.Join(columns, ","))
	}
	e, err := readEntry(q, cells)
	if err != nil {
		return p.errorf("%w", err)
	}
	p.entries[q.Name] = e
	return nil
}

// finish puts what was read in order.
func (p *parser) finish() (*Calibration, error) {
	var missing []string
	for _, f := range factNames {
		if !p.facts[f] {
			missing = append(missing, f)
		}
	}
	for i := range Quantities {
		q := &Quantities[i]
		e, ok := p.entries[q.Name]
		if !ok {
			missing = append(missing, q.Name)
			continue
		}
		p.c.set(e)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: missing: %s", p.file, strings.Join(missing, ", "))
	}
	return &p.c, nil
}

// set adds the entry of a quantity that comes after those there.
func (c *Calibration) set(e Entry) {
	*e.Quantity.Of(&c.Costs) = e.Value
	c.Entries = append(c.Entries, e)
}

// words are what a line can begin with.
func words() []string {
	names := slices.Clone(factNames)
	for _, q := range Quantities {
		names = append(names, q.Name)
	}
	return names
}
