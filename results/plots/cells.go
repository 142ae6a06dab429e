// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fills are the colours of cells: the first, which most cells have, is pale. The others are those of
// Okabe and Ito, and three more where these run out.
var fills = []color.Color{
	rgb(0xf0f0f0), rgb(0xd55e00), rgb(0x0072b2), rgb(0xe69f00), rgb(0x009e73), rgb(0xcc79a7), rgb(0x56b4e9), rgb(0xf0e442),
	rgb(0x606060), rgb(0x5e3c99), rgb(0xb8a07a), rgb(0x6b4423), rgb(0xc8c8c8),
}

func fillOf(i int) color.Color { return fills[i%len(fills)] }

// Sizes of a matrix: the height of a line, and what is above and below its cells besides names.
const (
	cellHeight  = 4.6 * vg.Millimeter
	aroundCells = 34 * vg.Millimeter
)

// matrix is how large a chart of cells is: every label fits its cell, every name its place.
func (c *Chart) matrix() (wide, high vg.Length) {
	cell, left, below := 7*vg.Millimeter, vg.Length(0), vg.Length(0)
	for _, s := range c.Series {
		for _, line := range s.Labels {
			cell = max(cell, pointStyle.Wide(line)+1.6*vg.Millimeter)
		}
	}
	for _, name := range c.Y.Names {
		left = max(left, smallStyle.Wide(name))
	}
	for _, name := range c.X.Names {
		below = max(below, smallStyle.Wide(name))
	}
	wide = 2*margin + 2*axisRow + left + vg.Length(len(c.X.Names))*cell
	return max(wide, width), aroundCells + below + vg.Length(len(c.Y.Names))*cellHeight
}

// drawCells fills the boxes around points, and writes labels into them.
func (d drawn) drawCells(c draw.Canvas, p *plot.Plot, fill color.Color, at []vg.Point) {
	const rim = 0.25 * vg.Millimeter
	w := (c.X(p.X.Norm(1))-c.X(p.X.Norm(0)))/2 - rim
	h := (c.Y(p.Y.Norm(0))-c.Y(p.Y.Norm(1)))/2 - rim
	style := pointStyle
	style.Align = text.XCenter
	if r, g, b, _ := fill.RGBA(); 3*r+6*g+b < 10*0x8000 { // light ink on dark cells
		style.Ink = color.White
	}
	for i, pt := range at {
		box := Box(pt.X-w, pt.Y-h, pt.X+w, pt.Y+h)
		c.FillPolygon(fill, box)
		c.StrokeLines(draw.LineStyle{Color: grey, Width: 0.3}, append(box, box[0]))
		if d.Labels != nil {
			style.Write(c, pt.X, pt.Y-0.95*vg.Millimeter, d.Labels[i])
		}
	}
}
