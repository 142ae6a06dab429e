// SPDX-License-Identifier: Apache-2.0

// Package plots draws charts in one style that can be read in print: black on
// white, colours that differ for every kind of colour vision and marks and
// dashes that differ without any, units in the labels of axes. A [Chart] is
// data; its Picture is written as SVG and as PNG, the same picture, and the same
// bytes every time.
package plots

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is what is to be seen. Title says the one thing that it shows; labels of
// axes have the unit in them.
type Chart struct {
	Title, Subtitle string
	X, Y            Axis
	Series          []Series
	Alone           bool      // no two series have a bar at the same place
	Width, Height   vg.Length // 0: 165 by 105 mm, which fits a page
}

// Axis is one of the two. Zero on an axis that is Log has a place of its own,
// left of a gap. With Names the values are places: 0, 1, 2 and so on.
type Axis struct {
	Label string
	Log   bool
	Names []string
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

// Sizes and letters of all charts.
const (
	width    = 165 * vg.Millimeter
	height   = 105 * vg.Millimeter
	margin   = 4 * vg.Millimeter
	smallRow = 4.2 * vg.Millimeter
	axisRow  = 5 * vg.Millimeter
)

var (
	titleStyle = Style{Size: 11, Bold: true}
	smallStyle = Style{Size: 8}
	pointStyle = Style{Size: 7.5}
	labelStyle = Style{Size: 9, Align: text.XCenter}
)

// Picture is the chart on paper. A chart with numbers that have no place on its
// axes cannot be drawn.
func (c *Chart) Picture() Picture {
	p := Picture{Width: c.Width, Height: c.Height, Err: c.check()}
	if c.has(Cells) {
		p.Width, p.Height = c.matrix()
	}
	if p.Width == 0 {
		p.Width = width
	}
	if p.Height == 0 {
		p.Height = height
	}
	p.Draw = func(canvas draw.Canvas) { c.draw(canvas, p) }
	return p
}

func (c *Chart) draw(canvas draw.Canvas, p Picture) {
	y := p.Height - margin - 3*vg.Millimeter
	titleStyle.Fit(c.Title, p.Width-2*margin).Write(canvas, margin, y, c.Title)
	y -= smallRow + 0.5*vg.Millimeter
	if c.Subtitle != "" {
		smallStyle.Fit(c.Subtitle, p.Width-2*margin).Write(canvas, margin, y, c.Subtitle)
		y -= smallRow
	}
	y = c.legend(canvas, margin, y, p.Width-margin)
	area := draw.Crop(canvas, margin, -margin, margin, y-p.Height)
	if c.X.Label != "" {
		area.Min.Y += axisRow
	}
	if c.Y.Label != "" {
		area.Min.X += axisRow
	}
	area.Max.X -= c.overhang()
	if c.labelled() { // what stands at the highest point keeps off the legend
		area.Max.Y -= 3 * vg.Millimeter
	}
	inside := c.plot()
	inside.Draw(area)
	// The library would place labels by values, which logarithmic axes displace.
	data := inside.DataCanvas(area)
	labelStyle.Write(canvas, (data.Min.X+data.Max.X)/2, margin+0.5*vg.Millimeter, c.X.Label)
	turned := labelStyle.text()
	turned.Rotation = math.Pi / 2
	canvas.FillText(turned, vg.Point{X: margin + 3.5*vg.Millimeter, Y: (data.Min.Y + data.Max.Y) / 2}, c.Y.Label)
}

// overhang is what labels behind lying bars need on the right.
func (c *Chart) overhang() (wide vg.Length) {
	for _, s := range c.Series {
		for _, line := range s.Labels {
			if s.Kind == Lying {
				wide = max(wide, pointStyle.Wide(line)+1*vg.Millimeter)
			}
		}
	}
	return wide
}

// labelled tells whether texts stand above points.
func (c *Chart) labelled() bool {
	return slices.ContainsFunc(c.Series, func(s Series) bool {
		return s.Labels != nil && s.Kind != Lying && s.Kind != Cells
	})
}

// has tells whether some series is drawn like that.
func (c *Chart) has(k Mark) bool {
	return slices.ContainsFunc(c.Series, func(s Series) bool { return s.Kind == k })
}

// plot sets the axes up and hands the series over.
func (c *Chart) plot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	styleAxis(&p.X)
	styleAxis(&p.Y)
	c.X.apply(&p.X, c.extent(func(s *Series, i int) []float64 { return s.X[i : i+1] }))
	c.Y.apply(&p.Y, c.extent(func(s *Series, i int) []float64 {
		if s.Low != nil {
			return []float64{s.Y[i], s.Low[i], s.High[i]}
		}
		return s.Y[i : i+1]
	}))
	p.Add(gridLines{c.X.Names == nil, c.Y.Names == nil})
	if c.has(Cells) { // names across go upwards, and cells need no axes
		p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0
		p.X.Tick.LineStyle.Width, p.X.Tick.Length = 0, 2.5*vg.Millimeter
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/2, draw.XRight, draw.YCenter
	}
	bars := 0
	for i := range c.Series {
		if k := c.Series[i].Kind; (k == Bars || k == Lying) && (bars == 0 || !c.Alone) {
			bars++
		}
	}
	if c.has(Lying) || c.has(Cells) {
		p.Y.Scale = plot.InvertedScale{Normalizer: p.Y.Scale}
	}
	bar := 0
	for i := range c.Series {
		s := &c.Series[i]
		p.Add(drawn{s, i, bar, bars})
		if (s.Kind == Bars || s.Kind == Lying) && !c.Alone {
			bar++
		}
	}
	return p
}

func styleAxis(a *plot.Axis) {
	tick := a.Tick.Label
	a.Tick.Label = smallStyle.text()
	a.Tick.Label.XAlign, a.Tick.Label.YAlign = tick.XAlign, tick.YAlign
	a.LineStyle.Width, a.Tick.LineStyle.Width = 0.6, 0.6
	a.Padding = 2 * vg.Millimeter
}

// span is a range of values.
type span struct {
	low, high float64
	least     float64 // smallest value above 0
	any, zero bool
}

func (s *span) add(v float64) {
	if !s.any {
		s.low, s.high, s.any = v, v, true
	}
	s.low, s.high, s.zero = min(s.low, v), max(s.high, v), s.zero || v == 0
	if v > 0 && (s.least == 0 || v < s.least) {
		s.least = v
	}
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
