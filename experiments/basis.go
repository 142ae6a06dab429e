// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
)

// opening is what a report says below its headline, up to its first table or heading.
func opening(body string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(gaps.ReplaceAllString(body, "\n\n")), "\n") {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "![") {
			break
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// basis says in a sentence what modelled times rest on: the machines that rows name, how
// much of what is said of them is assumed, and how far published figures are off. It is
// "" where no row names a machine.
func basis(t results.Table, found any) string {
	var names []string
	at := slices.IndexFunc(t.Columns, func(c results.Column) bool { return c.Name == "calibration" })
	for _, row := range t.Rows {
		if at >= 0 && !row[at].IsEmpty() && !slices.Contains(names, row[at].String()) {
			names = append(names, row[at].String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	for i, name := range names {
		if c, err := calibration.Open(name); err == nil {
			assumed := len(Where(c.Entries, func(e calibration.Entry) bool { return e.Basis == calibration.Assumed }))
			names[i] = fmt.Sprintf("%s (%d of %d quantities assumed)", name, assumed, len(c.Entries))
		}
	}
	line := "Times are modelled on " + strings.Join(names, ", ")
	if low, high, ok := off(found); ok {
		line += fmt.Sprintf("; published cases are off by %+.0f to %+.0f %%", low, high)
	}
	return line + "."
}

// off is how far modelled times are from the published ones, at both ends, in per cent:
// of what an experiment predicts, or else of its comparisons that are no counts.
func off(found any) (low, high float64, ok bool) {
	var pairs []Comparison
	switch f := found.(type) {
	case interface{ Predictions() []Comparison }:
		pairs = f.Predictions()
	case interface{ Comparisons() []Comparison }:
		pairs = f.Comparisons()
	}
	var all []float64
	for _, c := range pairs {
		if !c.Exact && c.Published != 0 {
			all = append(all, 100*(c.Ours-c.Published)/math.Abs(c.Published))
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	return slices.Min(all), slices.Max(all), true
}
