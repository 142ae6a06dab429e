// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend explains the series in rows between left and right, the first one at y,
// and returns how far down that comes.
func (c *Chart) legend(canvas draw.Canvas, left, y, right vg.Length) vg.Length {
	const sample, between = 9 * vg.Millimeter, 5 * vg.Millimeter
	x, any := left, false
	for i := range c.Series {
		s := &c.Series[i]
		if s.Name == "" {
			continue
		}
		wide := sample + 1.5*vg.Millimeter + smallStyle.Wide(s.Name)
		if any && x+wide > right {
			x, y = left, y-smallRow
		}
		any = true
		sampleOf(canvas, s.Kind, i, x, y+1*vg.Millimeter, sample)
		smallStyle.Write(canvas, x+sample+1.5*vg.Millimeter, y, s.Name)
		x += wide + between
	}
	if any {
		y -= smallRow
	}
	return y + 2*vg.Millimeter
}

// sampleOf shows how a series looks.
func sampleOf(c draw.Canvas, k Mark, i int, x, y, wide vg.Length) {
	l := lookOf(i)
	switch k {
	case Cells:
		c.FillPolygon(fillOf(i), Box(x+2*vg.Millimeter, y-1.2*vg.Millimeter, x+wide, y+1.2*vg.Millimeter))
		return
	case Bars, Lying:
		swatch(c, l, Box(x+2*vg.Millimeter, y-1.2*vg.Millimeter, x+wide, y+1.2*vg.Millimeter))
		return
	case Line, Curve, Steps:
		c.StrokeLine2(l.line(), x, y, x+wide, y)
	}
	if k == Line || k == Points {
		c.DrawGlyph(l.glyph(), vg.Point{X: x + wide/2, Y: y})
	}
}

// hatching is lines that fill a bar.
type hatching uint8

const (
	rising hatching = 1 << iota
	falling
	level
)

// swatch fills a box: its colour, pale, with lines of the full colour over it.
func swatch(c draw.Canvas, l look, box []vg.Point) {
	r, g, b, _ := l.ink.RGBA()
	pale := func(v uint32) uint8 { return uint8(0xff - (0xff-v>>8)*6/10) }
	fill := color.Color(color.RGBA{pale(r), pale(g), pale(b), 0xff})
	if l.hatch == 0 {
		fill = l.ink
	}
	c.FillPolygon(fill, box)
	inside := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: box[0], Max: box[2]}}
	style := draw.LineStyle{Color: l.ink, Width: 0.5}
	w, h := box[2].X-box[0].X, box[2].Y-box[0].Y
	const every = 2.2 * vg.Millimeter
	for off := -h; l.hatch&(rising|falling) != 0 && off < w; off += every {
		if l.hatch&rising != 0 {
			c.StrokeLines(style, inside.ClipLinesXY([]vg.Point{{X: box[0].X + off, Y: box[0].Y},
				{X: box[0].X + off + h, Y: box[2].Y}})...)
		}
		if l.hatch&falling != 0 {
			c.StrokeLines(style, inside.ClipLinesXY([]vg.Point{{X: box[0].X + off, Y: box[2].Y},
				{X: box[0].X + off + h, Y: box[0].Y}})...)
		}
	}
	for y := every / 3; l.hatch&level != 0 && y < h; y += every / 3 {
		c.StrokeLine2(style, box[0].X, box[0].Y+y, box[2].X, box[0].Y+y)
	}
	c.StrokeLines(draw.LineStyle{Color: l.ink, Width: 0.5}, append(box, box[0]))
}
