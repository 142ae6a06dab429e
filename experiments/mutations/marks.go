// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"image/color"
	"slices"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
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

	propertyMarks = []mark{ // named as cpus.Property is
		{string(cpus.TornFetch), "TF", rgb(0xd55e00), white},
		{string(cpus.UnhandledBreakpoint), "UB", rgb(0x0072b2), white},
		{string(cpus.WrongInstruction), "WI", rgb(0x5e3c99), white},
		{string(cpus.UseAfterFree), "UF", rgb(0x56b4e9), black},
		{string(cpus.TornLiteral), "TL", rgb(0xf0e442), black},
		{string(cpus.HalfPair), "HP", rgb(0xcc79a7), black},
		{string(cpus.StaleAfterCompletion), "SC", rgb(0xe69f00), black},
		{string(cpus.LostCall), "LC", rgb(0xb8a07a), black},
		{string(cpus.BrokenSite), "BS", rgb(0x6b4423), white},
		{string(cpus.Overflow), "OV", rgb(0x009e73), white},
		{string(cpus.Deadlock), "DL", rgb(0x000000), white},
	}
)

func rgb(v uint32) color.Color { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// markOf is the mark of a cell.
func markOf(r *check.VerdictRow) mark {
	switch r.Verdict {
	case explore.Safe:
		return safeMark
	case explore.Incomplete:
		return incompleteMark
	}
	for _, m := range propertyMarks {
		if m.name == propertyName(r) {
			return m
		}
	}
	return otherMark
}

// marks are those that occur, each once.
func (m *Matrix) marks() []mark {
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
	return experiments.Where(slices.Concat([]mark{safeMark}, propertyMarks, []mark{otherMark, incompleteMark}),
		func(m mark) bool { return seen[m.code] })
}
