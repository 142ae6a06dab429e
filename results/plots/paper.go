// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/textpoke/textpoke/results"
)

// dpi is the resolution of PNG files.
const dpi = 200

// Picture is something that can be drawn on paper of this size.
type Picture struct {
	Width, Height vg.Length
	Draw          func(draw.Canvas)
	Err           error // why it cannot be drawn
}

// WriteSVG draws the picture as SVG.
func WriteSVG(w io.Writer, p Picture) error {
	if p.Err != nil {
		return p.Err
	}
	c := vgsvg.New(p.Width, p.Height)
	p.paint(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	// Letters of these fonts are as wide as those that they were measured in.
	_, err := w.Write(held(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))))
	return err
}

// line is a text element of the library's: its attributes, with weight and size of the
// font, and the text.
var line = regexp.MustCompile(`<text ([^>]*font-weight:(\w+);[^>]*font-size:([0-9.]+)px[^>]*)>([^<]+)</text>`)

// held says of each line of text how wide it was measured, so that it takes that room
// and no more where a browser has none of the fonts and takes one with wider letters.
func held(svg []byte) []byte {
	return line.ReplaceAllFunc(svg, func(element []byte) []byte {
		part := line.FindSubmatch(element)
		size, err := strconv.ParseFloat(string(part[3]), 64)
		if err != nil {
			return element
		}
		wide := Style{Size: size, Bold: string(part[2]) == "bold"}.Wide(html.UnescapeString(string(part[4])))
		return fmt.Appendf(nil, `<text textLength="%.5g" lengthAdjust="spacingAndGlyphs" %s>%s</text>`, wide.Points(),
			part[1], part[4])
	})
}

// WritePNG draws the picture as PNG.
func WritePNG(w io.Writer, p Picture) error {
	if p.Err != nil {
		return p.Err
	}
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(p.Width, p.Height), vgimg.UseDPI(dpi))}
	p.paint(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

func (p Picture) paint(c draw.Canvas) {
	c.FillPolygon(color.White, Box(0, 0, p.Width, p.Height))
	p.Draw(c)
}

// Box is the corners of a rectangle.
func Box(x0, y0, x1, y1 vg.Length) []vg.Point {
	return []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
}

// Fonts sets all text in Liberation Sans.
var fonts = text.Plain{Fonts: font.NewCache(liberation.Collection())}

// Style is how a line of text looks.
type Style struct {
	Size  float64 // in points
	Bold  bool
	Align text.XAlignment
	Ink   color.Color // black by default
	Up    bool        // the line goes upwards
}

// text is the style as the library wants it.
func (s Style) text() draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(s.Size)}
	if s.Bold {
		f.Weight = xfont.WeightBold
	}
	ink := s.Ink
	if ink == nil {
		ink = color.Black
	}
	return draw.TextStyle{Color: ink, Font: f, XAlign: s.Align, YAlign: draw.YBottom, Handler: fonts}
}

// Write puts one line of text with its baseline at y.
func (s Style) Write(c draw.Canvas, x, y vg.Length, line string) {
	t := s.text()
	if s.Up {
		t.Rotation = math.Pi / 2
	}
	c.FillText(t, vg.Point{X: x, Y: y - fonts.Extents(t.Font).Descent}, line)
}

// Wide is how wide a line of text is.
func (s Style) Wide(line string) vg.Length { return s.text().Width(line) }

// Fit is the style, its letters made smaller where the line would be wider than
// that: down to two thirds, which can still be read.
func (s Style) Fit(line string, wide vg.Length) Style {
	if w := s.Wide(line); w > wide {
		s.Size *= max(float64(wide/w), 2.0/3)
	}
	return s
}

// apply sets a library's axis up for values that go so far.
func (a Axis) apply(to *plot.Axis, s span) {
	if a.Names != nil {
		to.Min, to.Max = -0.6, float64(len(a.Names))-0.4
		to.Tick.Marker = named(a.Names)
		to.Tick.Length = 0
		return
	}
	if a.Log {
		l := logScale{zero: s.zero, low: below(s.least), high: above(s.high)}
		if l.high <= l.low {
			l.high = 10 * l.low
		}
		to.Min, to.Max = l.low, l.high
		if l.zero {
			to.Min = 0
		}
		to.Scale, to.Tick.Marker = l, l
		return
	}
	room := (s.high - s.low) * 0.06
	if s.low >= 0 && s.low < s.high/2 {
		s.low = 0
	} else {
		s.low -= room
	}
	s.high += room
	if s.high <= s.low {
		s.high = s.low + 1
	}
	to.Min, to.Max = s.low, s.high
	to.Tick.Marker = plain{}
}

// round125 are the numbers that a logarithmic axis may begin and end with, times
// a power of ten.
var round125 = []float64{1, 2, 5, 10}

// below is the greatest round number that is not above v; above the least that
// is not below it.
func below(v float64) float64 {
	if v <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	out := ten
	for _, m := range round125 {
		if m*ten <= v*(1+1e-9) {
			out = m * ten
		}
	}
	return out
}

func above(v float64) float64 {
	low := below(v)
	if low >= v*(1-1e-9) {
		return low
	}
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	i := slices.IndexFunc(round125, func(m float64) bool { return m*ten > low*(1+1e-9) })
	return round125[i] * ten
}

// logScale places powers of ten evenly, and zero, where it occurs, left of them.
type logScale struct {
	zero      bool
	low, high float64
}

// gap is how much of the axis zero takes.
const gap = 0.09

// Normalize says where on the axis, from 0 to 1, a value is.
func (l logScale) Normalize(_, _, v float64) float64 {
	at := math.Log(v/l.low) / math.Log(l.high/l.low)
	if !l.zero {
		return at
	}
	if v <= 0 {
		return 0
	}
	return gap + (1-gap)*max(at, 0)
}

// Ticks marks the powers of ten, and more where there are few of them.
func (l logScale) Ticks(_, _ float64) (out []plot.Tick) {
	if l.zero {
		out = append(out, plot.Tick{Value: 0, Label: "0"})
	}
	decades := math.Log10(l.high / l.low)
	for e := math.Floor(math.Log10(l.low)); e <= math.Ceil(math.Log10(l.high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < l.low*0.999 || v > l.high*1.001 {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || decades <= 2 {
				t.Label = results.Thousands(v)
			}
			out = append(out, t)
		}
	}
	return out
}

// plain marks round numbers.
type plain struct{}

// Ticks are the library's, with labels that can be read.
func (plain) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = results.Thousands(ticks[i].Value)
		}
	}
	return ticks
}

// named marks places with names.
type named []string

// Ticks are the names.
func (n named) Ticks(_, _ float64) (out []plot.Tick) {
	for i, name := range n {
		out = append(out, plot.Tick{Value: float64(i), Label: name})
	}
	return out
}
