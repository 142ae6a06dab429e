// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"image/color"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// mark is how a verdict looks: a colour, and letters for those who see no colours
// or print none.
type mark struct {
	name, code string
	fill, ink  color.Color
}

var (
	grey  = color.Gray{Y: 0x9a}
	white = color.White
	black = color.Black
)

// The colours are those of Okabe and Ito, "Color Universal Design" (2008), which
// differ for every kind of colour vision, and two browns where those run out.
var (
	safeMark       = mark{"safe in every interleaving", "safe", color.Gray{Y: 0xf4}, color.Gray{Y: 0x60}}
	incompleteMark = mark{"cut short: nothing is known", "?", white, black}
	otherMark      = mark{"something else", "??", white, black}

	propertyMarks = []struct {
		property cpus.Property
		mark
	}{
		{cpus.TornFetch, mark{"torn-fetch", "TF", rgb(0xd55e00), white}},
		{cpus.UnhandledBreakpoint, mark{"unhandled-breakpoint", "UB", rgb(0x0072b2), white}},
		{cpus.UseAfterFree, mark{"use-after-free", "UF", rgb(0x56b4e9), black}},
		{cpus.TornLiteral, mark{"torn-literal", "TL", rgb(0xf0e442), black}},
		{cpus.HalfPair, mark{"half-pair", "HP", rgb(0xcc79a7), black}},
		{cpus.StaleAfterCompletion, mark{"stale-after-completion", "SC", rgb(0xe69f00), black}},
		{cpus.LostCall, mark{"lost-call", "LC", rgb(0xb8a07a), black}},
		{cpus.BrokenSite, mark{"broken-site", "BS", rgb(0x6b4423), white}},
		{cpus.Overflow, mark{"overflow", "OV", rgb(0x009e73), white}},
		{cpus.Deadlock, mark{"deadlock", "DL", rgb(0x000000), white}},
	}
)

func rgb(v uint32) color.Color { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// markOf is the mark of a cell.
func markOf(c *MatrixCell) mark {
	switch c.Verdict {
	case explore.Safe:
		return safeMark
	case explore.Incomplete:
		return incompleteMark
	}
	for _, m := range propertyMarks {
		if m.property == c.Property {
			return m.mark
		}
	}
	return otherMark
}

// marks are those that occur, each once.
func (m *Matrix) marks() (out []mark) {
	seen := map[string]bool{}
	for _, g := range m.Groups {
		for _, l := range g.Lines {
			for _, c := range l.Cells {
				if c != nil {
					seen[markOf(c).code] = true
				}
			}
		}
	}
	all := []mark{safeMark}
	for _, m := range propertyMarks {
		all = append(all, m.mark)
	}
	for _, m := range append(all, otherMark, incompleteMark) {
		if seen[m.code] {
			out = append(out, m)
		}
	}
	return out
}
