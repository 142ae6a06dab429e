// SPDX-License-Identifier: Apache-2.0

package results

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// downwards prints the given columns one below the other and the rows side by side, as
// many as the screen is wide, the next ones below. A single row is "name: value" lines.
func (l Look) downwards(t Table, columns []int) string {
	if len(t.Rows) == 1 {
		return l.lines(t, columns)
	}
	names := 0
	for _, c := range columns {
		names = max(names, len(t.heading(c)))
	}
	var blocks []string
	for from := 0; from < len(t.Rows); {
		to, used := from, names
		var widths []int
		for to < len(t.Rows) {
			n := 0
			for _, c := range columns {
				n = max(n, displayed(t.shown(t.Rows[to], c)))
			}
			if to > from && used+2+n > l.wide() {
				break
			}
			widths, used, to = append(widths, n), used+2+n, to+1
		}
		blocks = append(blocks, l.block(t, columns, names, from, widths))
		from = to
	}
	return strings.Join(blocks, "\n")
}

// block prints some rows side by side. A cell that is wider than the screen goes on in
// the next line.
func (l Look) block(t Table, columns []int, names, from int, widths []int) string {
	var b strings.Builder
	for _, c := range columns {
		line := text.Pad(t.heading(c), names, ' ')
		for i, n := range widths {
			s := t.shown(t.Rows[from+i], c)
			if room := l.wide() - names - 2; n > room && room > 0 {
				s = folded(s, room, names+2)
			} else if len(widths) > 1 {
				line += strings.Repeat(" ", n-displayed(s))
			}
			line += "  " + l.paint(t, c, s)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// lines prints "name: value" of the first row for each of the columns.
func (l Look) lines(t Table, columns []int) string {
	var b strings.Builder
	for _, c := range columns {
		if s := t.shown(t.Rows[0], c); s != "" {
			name := t.heading(c) + ": "
			if l.Width > len(name) {
				s = folded(s, l.Width-len(name), len(name))
			}
			b.WriteString(name + l.paint(t, c, s) + "\n")
		}
	}
	return b.String()
}

// folded breaks text into lines of so many characters, of which all but the first are
// indented.
func folded(s string, width, indent int) string {
	lines := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// displayed is how many characters wide text is on a screen.
func displayed(s string) int { return text.StringWidthWithoutEscSequences(s) }
