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

// Explain prints a trace for people: one numbered step a line, a column for each
// patcher and CPU that does something, the bytes of each site after the step, and
// what those CPUs may fetch of the sites that they are about, the newest first,
// where that is not simply what is there. Then which property broke, and why.
func (t *Trace) Explain() string {
	who := t.columns()
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Options.SeparateColumns = true
	w.Style().Format.Header = text.FormatDefault
	header := table.Row{"step"}
	for _, name := range who {
		header = append(header, name)
	}
	if len(t.Steps) == 0 {
		return ""
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
	return w.Render() + "\n" + t.verdict()
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
		bytes := site.Bytes
		if site.Literal != "" {
			bytes += " (" + site.Literal + ")"
		}
		row = append(row, bytes)
	}
	return append(row, strings.Join(t.windows(n, who), "\n"))
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
				line := fmt.Sprintf("cpu %d, site %d: %s", cpu, i, now)
				lines = append(lines, text.WrapSoft(line, 2*explainWidth))
			}
		}
	}
	return lines
}

// verdict is the property that broke, and why.
func (t *Trace) verdict() string {
	v := t.Violation
	s := fmt.Sprintf("%s: CPU %d", v.Property, v.CPU)
	if v.Bytes != "" {
		s += fmt.Sprintf(", site %d at %s, bytes %s", v.Site, v.Addr, v.Bytes)
	}
	s += ": " + v.Why + "\n"
	if !t.Shortest {
		s += "There may be a shorter way: looking for it step by step would have taken too much room.\n"
	}
	return s
}

// columns are those who do something, the patchers first.
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
