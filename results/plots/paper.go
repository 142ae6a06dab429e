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
	"strconv"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
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
