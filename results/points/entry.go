// SPDX-License-Identifier: Apache-2.0

package points

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/textpoke/textpoke/results"
)

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

// entry is a line of a folder's file: a point, and what it came to.
type entry struct {
	Point int    `json:"point"` // its number, from 0
	Key   string `json:"key"`   // what it is
	Outcome[Row]
}

// parse reads the text of a folder's file. whole is the length up to the end of the last
// whole line.
func parse(path string, data []byte) (h Run, entries map[int]entry, whole int, err error) {
	entries = map[int]entry{}
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
			var e entry
			if reason = json.Unmarshal(text, &e); reason == nil {
				reason = e.check(h, entries)
			}
			entries[e.Point] = e
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
func (e *entry) check(h Run, seen map[int]entry) error {
	if e.Point < 0 || e.Point >= h.Points {
		return fmt.Errorf("combination %d of %d", e.Point, h.Points)
	}
	if _, is := seen[e.Point]; is {
		return fmt.Errorf("combination %d: a second time", e.Point)
	}
	return nil
}
