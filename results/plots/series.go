// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how a series differs from the others: by colour, and for those who see
// none by mark, dash and hatching.
type look struct {
	ink   color.Color
	mark  draw.GlyphDrawer
	dash  []vg.Length
	hatch hatching
}

// The colours are those of Okabe and Ito, "Color Universal Design" (2008), which
// differ for every kind of colour vision. Yellow is left out: it is too light for
// lines on white.
var looks = []look{
	{rgb(0x0072b2), draw.CircleGlyph{}, nil, 0},
	{rgb(0xd55e00), draw.SquareGlyph{}, []vg.Length{6, 2}, rising},
	{rgb(0x009e73), draw.TriangleGlyph{}, []vg.Length{1.5, 1.5}, level},
	{rgb(0xcc79a7), draw.CrossGlyph{}, []vg.Length{6, 2, 1.5, 2}, rising | falling},
	{rgb(0xe69f00), draw.PyramidGlyph{}, []vg.Length{3, 1.5}, falling},
	{rgb(0x56b4e9), draw.RingGlyph{}, []vg.Length{10, 3}, level | rising},
	{rgb(0x000000), draw.PlusGlyph{}, []vg.Length{1.5, 4}, level | falling},
}

func rgb(v uint32) color.Color { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

func lookOf(i int) look { return looks[i%len(looks)] }

func (l look) line() draw.LineStyle {
	return draw.LineStyle{Color: l.ink, Width: 1.1, Dashes: l.dash}
}

func (l look) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.ink, Radius: 2.4, Shape: l.mark}
}

var grey = color.Gray{Y: 0xd8}

// gridLines are faint lines at the labelled ticks.
type gridLines struct{ upright, level bool }

// Plot draws them.
func (g gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	style := draw.LineStyle{Color: grey, Width: 0.4}
	if g.upright {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			if x := c.X(p.X.Norm(t.Value)); t.Label != "" {
				c.StrokeLine2(style, x, c.Min.Y, x, c.Max.Y)
			}
		}
	}
	if g.level {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			if y := c.Y(p.Y.Norm(t.Value)); t.Label != "" {
				c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
			}
		}
	}
}

// drawn is a series in its chart: the n-th, the bar-th of those with bars.
type drawn struct {
	*Series
	n, bar, bars int
}

// Plot draws the series.
func (d drawn) Plot(c draw.Canvas, p *plot.Plot) {
	l := lookOf(d.n)
	at := make([]vg.Point, len(d.X))
	for i := range d.X {
		at[i] = vg.Point{X: c.X(p.X.Norm(d.X[i])), Y: c.Y(p.Y.Norm(d.Y[i]))}
	}
	switch d.Kind {
	case Bars, Lying:
		d.drawBars(c, p, l, at)
	case Cells:
		d.drawCells(c, p, fillOf(d.n), at)
		return
	case Line, Curve:
		c.StrokeLines(l.line(), c.ClipLinesXY(at)...)
	case Steps:
		var stairs []vg.Point
		for i, pt := range at {
			if i > 0 {
				stairs = append(stairs, vg.Point{X: pt.X, Y: at[i-1].Y})
			}
			stairs = append(stairs, pt)
		}
		c.StrokeLines(l.line(), c.ClipLinesXY(stairs)...)
	}
	for i, pt := range at {
		if d.Kind == Line || d.Kind == Points {
			c.DrawGlyph(l.glyph(), pt)
		}
		if d.Low != nil {
			x := pt.X
			if d.Kind == Bars {
				x += d.shift(c, p)
			}
			whisker(c, l, x, c.Y(p.Y.Norm(d.Low[i])), c.Y(p.Y.Norm(d.High[i])))
		}
		if d.Labels != nil {
			d.label(c, p, pt, d.Labels[i])
		}
	}
}

// label writes what stands at a point: above it, or right of it where bars lie.
func (d drawn) label(c draw.Canvas, p *plot.Plot, pt vg.Point, line string) {
	style := pointStyle
	switch d.Kind {
	case Lying:
		style.Write(c, pt.X+1*vg.Millimeter, pt.Y+d.shift(c, p)-0.9*vg.Millimeter, line)
	case Bars:
		style.Align = text.XCenter
		style.Write(c, pt.X+d.shift(c, p), pt.Y+0.8*vg.Millimeter, line)
	default:
		style.Write(c, pt.X+1.4*vg.Millimeter, pt.Y+0.8*vg.Millimeter, line)
	}
}

// whisker is an interval.
func whisker(c draw.Canvas, l look, x, low, high vg.Length) {
	style := draw.LineStyle{Color: l.ink, Width: 0.8}
	const cap = 1.1 * vg.Millimeter
	c.StrokeLine2(style, x, low, x, high)
	c.StrokeLine2(style, x-cap, low, x+cap, low)
	c.StrokeLine2(style, x-cap, high, x+cap, high)
}

// barWidth is how wide bars are, as long as there are few.
const barWidth = 5 * vg.Millimeter

// thick is how wide one bar is: those of one place fit beside each other.
func (d drawn) thick(c draw.Canvas, p *plot.Plot) vg.Length {
	place := c.X(p.X.Norm(1)) - c.X(p.X.Norm(0))
	if d.Kind == Lying {
		place = c.Y(p.Y.Norm(0)) - c.Y(p.Y.Norm(1))
	}
	return min(barWidth, 0.8*place/vg.Length(max(d.bars, 1)))
}

// shift is how far from its place the series' bar stands: the first one left, or
// on top.
func (d drawn) shift(c draw.Canvas, p *plot.Plot) vg.Length {
	off := (vg.Length(d.bar) - vg.Length(d.bars-1)/2) * d.thick(c, p)
	if d.Kind == Lying {
		return -off
	}
	return off
}

func (d drawn) drawBars(c draw.Canvas, p *plot.Plot, l look, at []vg.Point) {
	half, shift := d.thick(c, p)/2*0.92, d.shift(c, p)
	for _, pt := range at {
		box := Box(pt.X+shift-half, c.Min.Y, pt.X+shift+half, pt.Y)
		if d.Kind == Lying {
			box = Box(c.Min.X, pt.Y+shift-half, pt.X, pt.Y+shift+half)
		}
		swatch(c, l, box)
	}
}

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
