// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// Header is what a run must have in common with the one that it resumes.
type Header struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision"`
	Args     []string          `json:"args"`    // that rows depend on, in a stable order
	Inputs   map[string]string `json:"inputs"`  // SHA-256 of each file that was read
	Columns  string            `json:"columns"` // of all tables, by name
	Points   int               `json:"points"`  // combinations in all
}

// plain is the header as it is read back: file names need not be text.
func (h Header) plain() (out Header) {
	data, err := json.Marshal(h)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return h // the types rule it out
	}
	return out
}

// same tells how the header of a file differs from this run's.
func (h Header) same(there Header) error {
	var diff []string
	differ := func(what, there, here string) {
		if there != here {
			diff = append(diff, fmt.Sprintf("%s: %s there, %s here", what, orNone(there), orNone(here)))
		}
	}
	differ("version", there.Version, h.Version)
	differ("revision", there.Revision, h.Revision)
	without := func(args, others []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return slices.Contains(others, a) }),
			" ")
	}
	differ("arguments", without(there.Args, h.Args), without(h.Args, there.Args))
	if diff == nil {
		differ("arguments", strings.Join(there.Args, " "), strings.Join(h.Args, " "))
	}
	names := slices.Collect(maps.Keys(h.Inputs))
	for name := range there.Inputs {
		if _, ok := h.Inputs[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		differ("SHA-256 of "+name, there.Inputs[name], h.Inputs[name])
	}
	differ("columns", there.Columns, h.Columns)
	differ("combinations", strconv.Itoa(there.Points), strconv.Itoa(h.Points))
	if diff == nil {
		return nil
	}
	return errors.New(strings.Join(diff, "; "))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Entry is what one point of a sweep came to.
type Entry struct {
	Point int    `json:"point"` // its number, from 0
	Key   string `json:"key"`   // the combination itself
	Rows  []Row  `json:"rows"`
	Wrong string `json:"wrong,omitempty"` // what is wrong with it, for people
	// Broken are the properties that this breaks.
	Broken []string `json:"broken,omitempty"`
}

// Row is a row of the table, and what goes with it.
type Row struct {
	Cells  Cells   `json:"cells"`
	Others []Cells `json:"beside,omitempty"` // rows of the other table
	Text   string  `json:"text,omitempty"`   // for people, above the tables
}

// Cells is a row's cells; in JSON they keep their kinds.
type Cells []results.Value

// MarshalJSON writes the cells so that they are read back as they are.
func (c Cells) MarshalJSON() ([]byte, error) {
	texts := make([]string, len(c))
	for i, v := range c {
		texts[i] = v.Exact()
	}
	return json.Marshal(texts)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Cells) UnmarshalJSON(data []byte) error {
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*c = make(Cells, len(texts))
	for i, text := range texts {
		var err error
		if (*c)[i], err = results.ParseExact(text); err != nil {
			return err
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parse reads a journal's text. whole is the length up to the end of the last
// whole line.
func parse(path string, data []byte) (h Header, entries []Entry, whole int, err error) {
	seen := map[int]bool{}
	for n := 1; ; n++ {
		end := bytes.IndexByte(data[whole:], '\n')
		if end < 0 {
			return h, entries, whole, nil // nothing, or a torn line
		}
		last := whole+end+1 == len(data)
		text, reason := unwrap(data[whole : whole+end])
		if reason == nil && n == 1 {
			reason = json.Unmarshal(text, &h)
		} else if reason == nil {
			var e Entry
			if reason = json.Unmarshal(text, &e); reason == nil {
				reason = e.check(h, seen)
			}
			if reason == nil {
				entries = append(entries, e)
			}
		}
		switch {
		case reason != nil && last && errors.Is(reason, errSum):
			return h, entries, whole, nil // torn, by a machine that lost power
		case reason != nil:
			return h, nil, 0, fmt.Errorf("journal %s:%d: %w: the file is damaged; remove it to start over", path, n, reason)
		}
		whole += end + 1
	}
}

// errSum means that a line is not what was written.
var errSum = errors.New("the checksum is wrong")

// unwrap checks a line's sum, which stands in front.
func unwrap(line []byte) ([]byte, error) {
	sum, text, ok := bytes.Cut(line, []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !ok || err != nil || uint32(want) != crc32.Checksum(text, castagnoli) {
		return nil, errSum
	}
	return text, nil
}

// check refuses what this program would not write.
func (e *Entry) check(h Header, seen map[int]bool) error {
	switch {
	case e.Point < 0 || e.Point >= h.Points:
		return fmt.Errorf("combination %d of %d", e.Point, h.Points)
	case seen[e.Point]:
		return fmt.Errorf("combination %d: a second time", e.Point)
	}
	seen[e.Point] = true
	return nil
}
