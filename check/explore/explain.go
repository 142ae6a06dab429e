// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// explainWidth is how wide a column of Explain gets, in characters.
const explainWidth = 30

// ExplainIn is Explain on a screen that is so many characters wide, 0 for any: where the
// table is wider, the steps are numbered lines.
func (t *Trace) ExplainIn(width int) string {
	if len(t.Steps) == 0 {
		return ""
	}
	told := t.table()
	if first, _, _ := strings.Cut(told, "\n"); width > 0 && text.StringWidthWithoutEscSequences(first) > width {
		told = t.lines(width)
	}
	return told + "\n" + t.verdict(width)
}

// table is the steps as a table.
func (t *Trace) table() string {
	who := t.columns()
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Options.SeparateColumns = true
	w.Style().Format.Header = text.FormatDefault
	header := table.Row{"step"}
	for _, name := range who {
		header = append(header, name)
	}
	for i := range t.Steps[0].Sites {
		header = append(header, fmt.Sprintf("site %d", i))
	}
	w.AppendHeader(append(header, "may be fetched"))
	for n := range t.Steps {
		w.AppendRow(t.row(n, who))
	}
	var widths []table.ColumnConfig
	for i := range header {
		widths = append(widths, table.ColumnConfig{Number: i + 1, WidthMax: explainWidth, WidthMaxEnforcer: text.WrapSoft})
	}
	w.SetColumnConfigs(widths)
	return w.Render()
}

// lines is the steps as numbered lines, with the changes below each.
func (t *Trace) lines(width int) string {
	who := t.columns()
	var b strings.Builder
	for n := range t.Steps {
		s := &t.Steps[n]
		var below []string
		for i, site := range s.Sites {
			if n == 0 || site.Bytes != t.Steps[n-1].Sites[i].Bytes || site.Literal != t.Steps[n-1].Sites[i].Literal {
				below = append(below, fmt.Sprintf("site %d: %s", i, site.text()))
			}
		}
		below = append(below, t.windows(n, who)...)
		line := fmt.Sprintf("%3d. %s: %s", n+1, s.Who, s.What)
		b.WriteString(indented(line, 5, width))
		for _, line := range below {
			b.WriteString(indented("     | "+line, 9, width))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// indented breaks a line where the screen ends, and goes on with so many blanks; with
// width 0 nowhere.
func indented(line string, by, width int) string {
	if width <= by {
		return line + "\n"
	}
	line, lead := strings.TrimLeft(line, " "), line[:len(line)-len(strings.TrimLeft(line, " "))]
	first, rest, _ := strings.Cut(text.WrapSoft(line, width-len(lead)), "\n")
	out := lead + strings.TrimRight(first, " ") + "\n"
	if rest != "" {
		rest = strings.Join(strings.Fields(rest), " ")
		for next := range strings.SplitSeq(text.WrapSoft(rest, width-by), "\n") {
			out += strings.Repeat(" ", by) + strings.TrimRight(next, " ") + "\n"
		}
	}
	return out
}

// row is one step of Explain.
func (t *Trace) row(n int, who []string) table.Row {
	s := &t.Steps[n]
	row := table.Row{n + 1}
	for _, name := range who {
		what := ""
		if s.Who == name {
			what = s.What
		}
		row = append(row, what)
	}
	for _, site := range s.Sites {
		row = append(row, site.text())
	}
	windows := t.windows(n, who)
	for i := range windows {
		windows[i] = text.WrapSoft(windows[i], 2*explainWidth)
	}
	return append(row, strings.Join(windows, "\n"))
}

// text is what is there of a site, for people.
func (s Site) text() string {
	if s.Literal == "" {
		return s.Bytes
	}
	return s.Bytes + " (" + s.Literal + ")"
}

// windows is what CPUs may fetch besides what is there, after a step, where that
// has changed.
func (t *Trace) windows(n int, who []string) (lines []string) {
	for cpu := range t.Steps[n].CPUs {
		if !slices.Contains(who, fmt.Sprintf("cpu %d", cpu)) {
			continue
		}
		for i, site := range t.Steps[n].Sites {
			now := strings.Join(site.Fetch[cpu], " <- ")
			was := ""
			if n > 0 {
				was = strings.Join(t.Steps[n-1].Sites[i].Fetch[cpu], " <- ")
			}
			if now != was && (n > 0 || len(site.Fetch[cpu]) > 1) {
				lines = append(lines, fmt.Sprintf("cpu %d, site %d: %s", cpu, i, now))
			}
		}
	}
	return lines
}

// verdict is the property that broke, and why.
func (t *Trace) verdict(width int) string {
	v := t.Violation
	s := fmt.Sprintf("%s: CPU %d", v.Property, v.CPU)
	if v.Bytes != "" {
		s += fmt.Sprintf(", site %d at %s, bytes %s", v.Site, v.Addr, v.Bytes)
	}
	s = indented(s+": "+v.Why, 2, width)
	if !t.Shortest {
		s += indented("There may be a shorter way: the search has not gone through all of them.", 2, width)
	}
	return s
}

// columns are the patchers and CPUs that make a step, the patchers first.
func (t *Trace) columns() (who []string) {
	seen := map[string]bool{}
	for _, s := range t.Steps {
		seen[s.Who] = true
	}
	for _, kind := range []string{"patcher", "cpu"} {
		for i := range MaxCPUs {
			if name := fmt.Sprintf("%s %d", kind, i); seen[name] {
				who = append(who, name)
			}
		}
	}
	return who
}
