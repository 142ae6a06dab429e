// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/textpoke/textpoke/cpus"
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
	p := &parser{file: name, seen: map[string]bool{}, entries: map[string]Entry{}}
	p.csv = csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	p.csv.Comment = '#'
	p.csv.FieldsPerRecord = -1
	p.csv.TrimLeadingSpace = true
	return p.read()
}

// fact is one fact about the machine: how it is read, and written.
type fact struct {
	name string
	set  func(*Calibration, string) error
	get  func(*Calibration) string
}

var facts = []fact{
	{"name", func(c *Calibration, s string) error { c.Name = s; return CheckName(s) },
		func(c *Calibration) string { return c.Name }},
	{"machine", func(c *Calibration, s string) error {
		if c.Machine = s; s == "" {
			return errors.New("machine: empty")
		}
		return nil
	}, func(c *Calibration) string { return c.Machine }},
	{"arch", func(c *Calibration, s string) error {
		if c.Arch = s; !slices.Contains(cpus.ArchNames(), s) {
			return fmt.Errorf("arch %q: %w", s, spelling.NotOneOf(s, cpus.ArchNames()))
		}
		return nil
	}, func(c *Calibration) string { return c.Arch }},
	{"cpus", func(c *Calibration, s string) (err error) {
		if c.CPUs, err = strconv.Atoi(s); err != nil || c.CPUs < 1 || c.CPUs > cpus.MaxCPUs {
			return fmt.Errorf("cpus %q: want a whole number from 1 to %d", s, cpus.MaxCPUs)
		}
		return nil
	}, func(c *Calibration) string { return strconv.Itoa(c.CPUs) }},
}

// names are what a calibration can be called: results carry it in cells and in
// names of files.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName tells whether a calibration can be called so.
func CheckName(s string) error {
	if !names.MatchString(s) {
		return fmt.Errorf("name %q: want up to 64 letters, digits, dots, hyphens, and a letter or digit first", s)
	}
	return nil
}

// parser reads one file.
type parser struct {
	file    string
	csv     *csv.Reader
	c       Calibration
	seen    map[string]bool  // facts and quantities
	entries map[string]Entry // by quantity
}

func (p *parser) read() (*Calibration, error) {
	for first := true; ; first = false {
		cells, err := p.csv.Read()
		if err == io.EOF {
			return p.finish()
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
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
	name := cells[0]
	f := slices.IndexFunc(facts, func(f fact) bool { return f.name == name })
	q := ByName(name)
	switch {
	case f < 0 && q == nil:
		return p.errorf("%q: no such quantity%s", name, spelling.Hint(name, words()))
	case p.seen[name]:
		return p.errorf("%s: stands there twice", name)
	case f >= 0 && len(cells) != 2:
		return p.errorf("%s: %d cells, want 2: %s and its value (in quotes if there is a comma in it)", name, len(cells), name)
	case f < 0 && len(cells) != len(columns):
		return p.errorf("%s: %d cells, want %d: %s", name, len(cells), len(columns), strings.Join(columns, ","))
	}
	p.seen[name] = true
	var err error
	if f >= 0 {
		err = facts[f].set(&p.c, cells[1])
	} else {
		p.entries[name], err = readEntry(q, cells)
	}
	if err != nil {
		return p.errorf("%w", err)
	}
	return nil
}

// finish puts what was read in order.
func (p *parser) finish() (*Calibration, error) {
	missing := slices.DeleteFunc(words(), func(name string) bool { return p.seen[name] })
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: missing: %s", p.file, strings.Join(missing, ", "))
	}
	for i := range Quantities {
		p.c.Set(p.entries[Quantities[i].Name])
	}
	return &p.c, nil
}

// Set adds the entry of a quantity that comes after those there.
func (c *Calibration) Set(e Entry) {
	*e.Quantity.Of(&c.Costs) = e.Value
	c.Entries = append(c.Entries, e)
}

// words are what a line can begin with, in the order of a file.
func words() []string {
	names := spelling.Each(facts, func(f fact) string { return f.name })
	return append(names, spelling.Each(Quantities, func(q Quantity) string { return q.Name })...)
}
