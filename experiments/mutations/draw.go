// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/results/plots"
)

// Sizes on paper: the whole matrix fits on a landscape A4 page.
const (
	margin     = 6 * vg.Millimeter
	lineHeight = 3.34 * vg.Millimeter
	groupGap   = 1.2 * vg.Millimeter // above a protocol
	labelWidth = 34 * vg.Millimeter
	cellWidth  = 6.85 * vg.Millimeter
	archGap    = 1.2 * vg.Millimeter // between instruction sets
	panelGap   = 5 * vg.Millimeter
	headHeight = 15 * vg.Millimeter // title and what the numbers are
	colsHeight = 8 * vg.Millimeter  // names of the columns
	footHeight = 14 * vg.Millimeter // legend
	onePanel   = 48                 // lines that go into one panel; of more, two are made
)

// Picture is the matrix on paper.
func (m *Matrix) Picture() plots.Picture {
	p := newPage(m)
	return plots.Picture{Width: p.width, Height: p.height, Draw: p.draw}
}

// page is a matrix on its way to paper.
type page struct {
	m             *Matrix
	panels        [][]*MatrixGroup
	width, height vg.Length
	c             draw.Canvas
}

func newPage(m *Matrix) *page {
	p := &page{m: m, panels: panels(m.Groups)}
	var tallest vg.Length
	for _, groups := range p.panels {
		tallest = max(tallest, panelHeight(groups))
	}
	p.height = 2*margin + headHeight + colsHeight + tallest + footHeight
	n := vg.Length(len(p.panels))
	p.width = max(2*margin+n*p.panelWidth()+(n-1)*panelGap, 180*vg.Millimeter)
	return p
}

// panels splits the groups in two halves where one would be too long.
func panels(groups []*MatrixGroup) [][]*MatrixGroup {
	if panelHeight(groups) <= onePanel*lineHeight || len(groups) < 2 {
		return [][]*MatrixGroup{groups}
	}
	best, split := vg.Length(-1), 1
	for i := 1; i < len(groups); i++ {
		if h := max(panelHeight(groups[:i]), panelHeight(groups[i:])); best < 0 || h < best {
			best, split = h, i
		}
	}
	return [][]*MatrixGroup{groups[:split], groups[split:]}
}

func panelHeight(groups []*MatrixGroup) (h vg.Length) {
	for _, g := range groups {
		h += groupGap + vg.Length(1+len(g.Lines))*lineHeight
	}
	return h
}

func (p *page) panelWidth() vg.Length { return p.left(len(p.m.Columns)) }

// left is where a column begins within its panel.
func (p *page) left(column int) vg.Length {
	x := labelWidth + vg.Length(column)*cellWidth
	for i := 1; i < column && i < len(p.m.Columns); i++ {
		if p.m.Columns[i].Arch != p.m.Columns[i-1].Arch {
			x += archGap
		}
	}
	if column > 0 && column < len(p.m.Columns) && p.m.Columns[column].Arch != p.m.Columns[column-1].Arch {
		x += archGap
	}
	return x
}

func (p *page) draw(c draw.Canvas) {
	p.c = c
	y := p.height - margin
	p.write(margin, y-4*vg.Millimeter, 11, true, text.XLeft, color.Black, p.m.Title)
	p.write(
		margin,
		y-9*vg.Millimeter,
		7.5,
		false,
		text.XLeft,
		color.Black,
		"Number: steps of the shortest way to break it. Letters and colour: what breaks first. Empty: the protocol has "+
			"nothing for this mutation to break.",
	)
	x := margin
	for _, groups := range p.panels {
		p.panel(groups, x, y-headHeight)
		x += p.panelWidth() + panelGap
	}
	p.legend(margin, margin)
}

// panel draws some protocols, its top left corner given.
func (p *page) panel(groups []*MatrixGroup, x, y vg.Length) {
	for i, col := range p.m.Columns {
		left := x + p.left(i)
		if i == 0 || p.m.Columns[i-1].Arch != col.Arch {
			p.write(left, y-2.5*vg.Millimeter, 8, true, text.XLeft, color.Black, col.Arch)
		}
		p.write(left+cellWidth/2, y-colsHeight+1.5*vg.Millimeter, 4.5, false, text.XCenter, color.Black, col.Fetch)
	}
	y -= colsHeight
	for _, g := range groups {
		y -= groupGap + lineHeight
		p.write(x, y+1*vg.Millimeter, 7.5, true, text.XLeft, color.Black, g.Title)
		rule := vg.Point{X: x, Y: y}
		p.c.StrokeLine2(draw.LineStyle{Color: grey, Width: 0.4}, rule.X, rule.Y, x+p.panelWidth(), rule.Y)
		for _, l := range g.Lines {
			y -= lineHeight
			p.write(x+2*vg.Millimeter, y+1*vg.Millimeter, 7, false, text.XLeft, color.Black, l.Label)
			for i, cell := range l.Cells {
				if cell != nil {
					p.cell(cell, x+p.left(i), y)
				}
			}
		}
	}
}

// cell draws one verdict, its bottom left corner given.
func (p *page) cell(cell *check.VerdictRow, x, y vg.Length) {
	const rim = 0.25 * vg.Millimeter
	m := markOf(cell)
	frame := plots.Box(x+rim, y+rim, x+cellWidth-rim, y+lineHeight-rim)
	p.c.FillPolygon(m.fill, frame)
	edge := draw.LineStyle{Color: grey, Width: 0.3}
	p.c.StrokeLines(edge, append(frame, frame[0]))
	if cell.Verdict == explore.Incomplete { // crossed out, whatever the colour
		p.c.StrokeLine2(edge, frame[0].X, frame[0].Y, frame[2].X, frame[2].Y)
	}
	label := m.code
	if cell.Verdict == explore.Unsafe {
		label = fmt.Sprintf("%s %d", m.code, cell.Depth)
	}
	p.write(x+cellWidth/2, y+1.1*vg.Millimeter, 5.5, false, text.XCenter, m.ink, label)
}

// legend explains the marks that occur.
func (p *page) legend(x, y vg.Length) {
	const swatch = 8 * vg.Millimeter
	left, row := x, y+footHeight-8*vg.Millimeter
	for _, m := range p.m.marks() {
		if left+44*vg.Millimeter > p.width-margin {
			left, row = x, row-lineHeight-1*vg.Millimeter
		}
		frame := plots.Box(left, row, left+swatch, row+lineHeight-0.5*vg.Millimeter)
		p.c.FillPolygon(m.fill, frame)
		p.c.StrokeLines(draw.LineStyle{Color: grey, Width: 0.3}, append(frame, frame[0]))
		p.write(left+swatch/2, row+0.75*vg.Millimeter, 7, false, text.XCenter, m.ink, m.code)
		p.write(left+swatch+1.5*vg.Millimeter, row+0.75*vg.Millimeter, 7, false, text.XLeft, color.Black, m.name)
		left += 47 * vg.Millimeter
	}
}

// write puts one line of text with its baseline at y.
func (p *page) write(x, y vg.Length, size float64, bold bool, align text.XAlignment, ink color.Color, line string) {
	plots.Style{Size: size, Bold: bold, Align: align, Ink: ink}.Write(p.c, x, y, line)
}
