// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// colors are when words are coloured.
var colors = []string{"auto", "always", "never"}

// look is how a table looks on stdout.
func (c *common) look(table string) results.Look {
	return results.Look{Name: table, Width: c.width(), Paint: func(column, cell string) string {
		if column == "verdict" {
			return c.paint(cell, cell)
		}
		return cell
	}}
}

// width is how many characters wide stdout is, 0 where nothing limits it.
func (c *common) width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if c.screen != nil {
		if n, _, err := term.GetSize(int(c.screen.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// height is how many lines a terminal has, and as many as most have where stdout is none.
func (c *common) height() int {
	if c.screen != nil {
		if _, n, err := term.GetSize(int(c.screen.Fd())); err == nil {
			return max(n, topLines)
		}
	}
	return 24
}

// coloured tells whether stdout takes colours (https://no-color.org).
func (c *common) coloured() bool {
	return c.color == "always" ||
		c.color == "auto" && c.screen != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// tones are the colours of words that say how an answer came out: green, red and yellow
// (ECMA-48, select graphic rendition).
var tones = map[string]string{
	"safe": "32", "proved": "32", "unsafe": "1;31", "refuted": "1;31", "incomplete": "33", "unproved": "33",
	"answer": "1", "cost": "1", "yes": "32", "no": "1;31",
}

// paint colours text as an answer is coloured, if it is one.
func (c *common) paint(answer, text string) string {
	tone := tones[strings.ToLower(answer)]
	if tone == "" || !c.coloured() {
		return text
	}
	return "\x1b[" + tone + "m" + text + "\x1b[0m"
}

// painted colours the first word of a line.
func (c *common) painted(line string) string {
	end := strings.IndexFunc(line, func(r rune) bool { return r < 'A' || r > 'Z' })
	if end < 0 {
		end = len(line)
	}
	return c.paint(line[:end], line[:end]) + line[end:]
}

// pick chooses the columns that stdout shows, by their numbers, and says how they look:
// all without --columns.
func (c *common) pick(columns []results.Column) (shown []int, looks []results.Column, err error) {
	looks = slices.Clone(columns)
	names := make([]string, len(columns))
	for i := range columns {
		names[i], shown = columns[i].Name, append(shown, i)
	}
	for i, name := range names {
		stem, rate := strings.CutSuffix(name, "_per_s")
		isFlag := c.flags != nil && c.flags.Lookup(strings.ReplaceAll(stem, "_", "-")) != nil // it says what was asked for
		looks[i].Axis = isFlag && (rate || !slices.Contains(names, name+"_per_s"))
	}
	if c.format == results.FormatBench && !slices.ContainsFunc(looks, results.Column.Figure) {
		return nil, nil, errors.New("--format benchfmt: there are no figures to compare")
	}
	if c.columns == nil {
		return shown, looks, nil
	}
	ask := func(i int) { looks[i].Detail, looks[i].Lead = false, true }
	more := strings.HasPrefix(c.columns[0], "+") || c.columns[0] == "all"
	if !more {
		shown = nil
	}
	for _, name := range c.columns {
		if name == "all" {
			for i := range looks {
				looks[i].Detail = false
			}
			continue
		}
		plain := strings.TrimPrefix(name, "+")
		i := slices.Index(names, plain)
		if i < 0 {
			return nil, nil, fmt.Errorf("--columns %q: %w", plain, notOneOf(plain, names))
		}
		if ask(i); !more {
			shown = append(shown, i)
		}
	}
	return shown, spelling.Each(shown, func(i int) results.Column { return looks[i] }), nil
}

// printTable writes a table that is there already, as stdout shows it.
func (c *common) printTable(t results.Table) error {
	o := &output{c: c, table: t}
	for _, row := range t.Rows {
		if err := o.addRow(row); err != nil {
			return err
		}
	}
	return o.end()
}
