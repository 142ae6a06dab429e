// SPDX-License-Identifier: Apache-2.0

// Package plots draws charts in one style that can be read in print: black on
// white, colours that differ for every kind of colour vision and marks and
// dashes that differ without any, units in the labels of axes. A [Chart] is
// data; it is written as SVG, the same bytes every time.
package plots

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Chart is one picture. Title says the one thing that it shows; labels of
// axes have the unit in them.
type Chart struct {
	Title, Subtitle string
	X, Y            Axis
	Series          []Series
	Alone           bool // no two series have a bar at the same place
}

// Mark is how a series is drawn.
type Mark uint8

// The kinds.
const (
	Line   Mark = iota // marks joined by a line
	Curve              // a line without marks
	Points             // marks
	Steps              // a value holds until the next one
	Bars               // upright bars, those of several series side by side
	Lying              // bars from the left, names on the Y axis, the first on top
	Cells              // filled boxes of a matrix with names on both axes, the first on top, each with its label inside
)

// Series is values that belong together. Low and High, where they are given, are
// intervals around Y. Labels, where they are given, stand at the points.
type Series struct {
	Name      string // for the legend; "" for none
	Kind      Mark
	X, Y      []float64
	Low, High []float64
	Labels    []string
}

// check refuses a chart with numbers that cannot be placed.
func (c *Chart) check() error {
	for _, s := range c.Series {
		if len(s.X) != len(s.Y) || s.Low != nil && (len(s.Low) != len(s.Y) || len(s.High) != len(s.Y)) || s.Labels != nil &&
			len(s.Labels) != len(s.Y) {
			return fmt.Errorf("chart %q: series %q: values of different lengths", c.Title, s.Name)
		}
		for i := range s.X {
			for _, v := range []struct {
				axis  Axis
				value float64
			}{{c.X, s.X[i]}, {c.Y, s.Y[i]}} {
				if math.IsNaN(v.value) || math.IsInf(v.value, 0) || v.axis.Log && v.value < 0 {
					return fmt.Errorf("chart %q: series %q: point %d: %v has no place on the axis %q", c.Title, s.Name, i, v.value,
						v.axis.Label)
				}
			}
		}
	}
	return nil
}

// Sizes and letters of all charts, which fit a page.
const (
	width    = 165 * Millimeter
	height   = 105 * Millimeter
	margin   = 4 * Millimeter
	smallRow = 4.2 * Millimeter
	axisRow  = 5 * Millimeter
	padding  = 2 * Millimeter // between an axis and what is drawn
	mark     = 8.0            // a tick with a label; half of it is one without
)

var (
	titleStyle = style{size: 11, bold: true}
	smallStyle = style{size: 8}
	pointStyle = style{size: 7.5}
	labelStyle = style{size: 9, align: centre}
)

// WriteSVG draws the chart. One with numbers that have no place on its axes cannot be drawn.
func (c *Chart) WriteSVG(w io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	p := newPaper(c.size())
	y := p.high - margin - 3*Millimeter
	p.write(titleStyle.fit(c.Title, p.wide-2*margin), point{margin, y}, c.Title)
	y -= smallRow + 0.5*Millimeter
	if c.Subtitle != "" {
		p.write(smallStyle.fit(c.Subtitle, p.wide-2*margin), point{margin, y}, c.Subtitle)
		y -= smallRow
	}
	f := c.frame(p, c.legend(p, y))
	f.axes(c)
	for i, bar := 0, 0; i < len(c.Series); i++ {
		s := &c.Series[i]
		f.draw(drawn{s, looks[i%len(looks)], fills[i%len(fills)], bar})
		if (s.Kind == Bars || s.Kind == Lying) && !c.Alone {
			bar++
		}
	}
	for _, s := range c.Series { // above all lines, and away from them where there is room
		f.texts(&s)
	}
	p.WriteString("</svg>\n")
	_, err := w.Write(p.Bytes())
	return err
}

// has tells whether some series is drawn like that.
func (c *Chart) has(k Mark) bool {
	return slices.ContainsFunc(c.Series, func(s Series) bool { return s.Kind == k })
}

// bars is how many bars stand side by side at a place.
func (c *Chart) bars() (n int) {
	for _, s := range c.Series {
		if (s.Kind == Bars || s.Kind == Lying) && (n == 0 || !c.Alone) {
			n++
		}
	}
	return n
}

// Sizes of matrices and of lying bars: a line of them, and the room around all.
const (
	cellHeight = 4.6 * Millimeter
	around     = 34 * Millimeter
	eachName   = 6 * Millimeter
	eachBar    = 3.6 * Millimeter
)

// size is how large the chart is: every label fits its cell, every name its place.
func (c *Chart) size() (wide, high float64) {
	if c.has(Cells) {
		cell := 7 * Millimeter
		for _, s := range c.Series {
			cell = max(cell, pointStyle.widest(s.Labels)+1.6*Millimeter)
		}
		wide = 2*margin + 2*axisRow + smallStyle.widest(c.Y.Names) + float64(len(c.X.Names))*cell
		return max(wide, width), around + smallStyle.widest(c.X.Names) + float64(len(c.Y.Names))*cellHeight
	}
	if c.has(Lying) {
		return width, around + max(eachName, eachBar*float64(c.bars())+2*Millimeter)*float64(max(len(c.Y.Names), 4))
	}
	return width, height
}

// widest is the width of the widest of some lines.
func (s style) widest(lines []string) (out float64) {
	for _, line := range lines {
		out = max(out, s.wide(line))
	}
	return out
}

// frame is the part of the paper in which values are drawn.
type frame struct {
	*paper
	box
	across, up scale
	down       bool // the first name is on top
	bars       int
	taken      []box // by marks and lines
	said       []box // by texts at points
}

// frame leaves room for axes and the texts beside them.
func (c *Chart) frame(p *paper, top float64) *frame {
	f := &frame{paper: p, box: box{margin, margin, p.wide - margin, top}, bars: c.bars(), down: c.has(Lying) || c.has(Cells)}
	f.across = c.X.scale(c.extent(func(s *Series, i int) []float64 { return s.X[i : i+1] }))
	f.up = c.Y.scale(c.extent(func(s *Series, i int) []float64 {
		if s.Low != nil {
			return []float64{s.Y[i], s.Low[i], s.High[i]}
		}
		return s.Y[i : i+1]
	}))
	names := spelling.Each(f.up.ticks(), func(t tick) string { return t.label })
	f.x0 += smallStyle.widest(names) + 1*Millimeter + padding
	f.y0 += smallRow + padding
	if c.X.Label != "" {
		f.y0 += axisRow
	}
	if c.Y.Label != "" {
		f.x0 += axisRow
	}
	if c.has(Cells) {
		f.y0 += smallStyle.widest(c.X.Names) - smallRow
		return f
	}
	if c.Y.Names == nil {
		f.x0 += mark
	}
	f.x0 += padding
	if c.X.Names == nil {
		f.y0 += mark
	}
	if ticks := f.across.ticks(); c.X.Names == nil && len(ticks) > 0 { // the last number is written around its tick
		last := ticks[len(ticks)-1]
		f.x1 -= max(0, smallStyle.wide(last.label)/2-(1-f.across.at(last.value))*(f.x1-f.x0))
	}
	for _, s := range c.Series {
		if s.Kind == Lying { // labels stand behind the bars
			f.x1 = min(f.x1, p.wide-margin-pointStyle.widest(s.Labels)-1*Millimeter)
		} else if s.Labels != nil {
			f.y1 = top - 3*Millimeter
		}
	}
	return f
}

// extent is how far the values of one axis go.
func (c *Chart) extent(of func(*Series, int) []float64) (s span) {
	for i := range c.Series {
		for k := range c.Series[i].X {
			for _, v := range of(&c.Series[i], k) {
				s.add(v)
			}
		}
	}
	return s
}

// x and y are where values are drawn.
func (f *frame) x(v float64) float64 { return f.x0 + f.across.at(v)*(f.x1-f.x0) }

func (f *frame) y(v float64) float64 {
	at := f.up.at(v)
	if f.down {
		at = 1 - at
	}
	return f.y0 + at*(f.y1-f.y0)
}

// axes draws both with their ticks, labels and the faint lines of a grid.
func (f *frame) axes(c *Chart) {
	thin, faint := pen{width: 0.6}, pen{ink: grey, width: 0.4}
	matrix := c.has(Cells)
	left, bottom := f.x0-padding, f.y0-padding
	if !matrix {
		f.stroke(thin, []point{{left, f.y0}, {left, f.y1}}, []point{{f.x0, bottom}, {f.x1, bottom}})
	}
	below, beside := smallStyle, smallStyle
	below.align, beside.align = centre, right
	for _, t := range f.across.ticks() {
		x := f.x(t.value)
		switch {
		case matrix:
			upwards := beside
			upwards.up = true
			f.write(upwards, point{x + upwards.rise(), bottom}, t.label)
		case c.X.Names != nil:
			f.write(below, point{x, bottom - smallRow + 1*Millimeter}, t.label)
		default:
			f.tick(thin, t, point{x, bottom}, point{0, -1})
			f.write(below, point{x, bottom - mark - smallRow + 1.6*Millimeter}, t.label)
			if t.label != "" {
				f.stroke(faint, []point{{x, f.y0}, {x, f.y1}})
			}
		}
	}
	for _, t := range f.up.ticks() {
		y := f.y(t.value)
		edge := left - 1*Millimeter
		if c.Y.Names == nil {
			edge -= mark
			f.tick(thin, t, point{left, y}, point{-1, 0})
			if t.label != "" {
				f.stroke(faint, []point{{f.x0, y}, {f.x1, y}})
			}
		}
		f.write(beside, point{edge, y - beside.rise()}, t.label)
	}
	f.write(labelStyle, point{(f.x0 + f.x1) / 2, margin + 0.5*Millimeter}, c.X.Label)
	upwards := labelStyle
	upwards.up = true
	f.write(upwards, point{margin + 3.5*Millimeter, (f.y0 + f.y1) / 2}, c.Y.Label)
}

// tick draws a mark at an axis, in the direction that leads away from it.
func (f *frame) tick(with pen, t tick, at, away point) {
	long := mark
	if t.label == "" {
		long /= 2
	}
	f.stroke(with, []point{at, {at.x + away.x*long, at.y + away.y*long}})
}
