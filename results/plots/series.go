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
			whisker(c, l, pt.X, c.Y(p.Y.Norm(d.Low[i])), c.Y(p.Y.Norm(d.High[i])))
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

// noted is a note in its chart.
type noted struct{ Note }

// Plot writes it.
func (n noted) Plot(c draw.Canvas, p *plot.Plot) {
	style := pointStyle
	if n.Right {
		style.Align = text.XRight
	}
	style.Write(c, c.X(p.X.Norm(n.X)), c.Y(p.Y.Norm(n.Y)), n.Text)
}
