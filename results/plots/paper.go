// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Millimeter is one in points, the unit of all lengths: 72 are an inch.
const Millimeter = 72 / 25.4

// point is a place on the paper. Heights are measured from its lower edge.
type point struct{ x, y float64 }

// box is a rectangle by its lower left and its upper right corner.
type box struct{ x0, y0, x1, y1 float64 }

func (b box) corners() []point {
	return []point{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}}
}

// ink is a colour as 0xRRGGBB.
type ink uint32

const (
	black ink = 0x000000
	white ink = 0xffffff
	grey  ink = 0xd8d8d8
)

func (i ink) parts() (r, g, b uint32) {
	return uint32(i) >> 16, uint32(i) >> 8 & 0xff, uint32(i) & 0xff
}

// pale is the colour as it looks through six tenths of white.
func (i ink) pale() ink {
	r, g, b := i.parts()
	part := func(v uint32) uint32 { return 0xff - (0xff-v)*6/10 }
	return ink(part(r)<<16 | part(g)<<8 | part(b))
}

// dark tells whether white letters can be read on it better than black ones.
func (i ink) dark() bool {
	r, g, b := i.parts()
	return 3*r+6*g+b < 10*0x80
}

// pen is how a line is drawn; only a filled area where it has no width.
type pen struct {
	ink   ink
	width float64
	dash  []float64
}

// paper is a picture that is being drawn: the elements of an SVG.
type paper struct {
	bytes.Buffer
	wide, high float64
}

func newPaper(wide, high float64) *paper {
	p := &paper{wide: wide, high: high}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]spt" height="%[2]spt" viewBox="0 0 %[1]s %[2]s"`,
		number(wide), number(high))
	p.WriteString(` font-family="Liberation Sans,Arial,Helvetica,sans-serif">` + "\n")
	p.fill(white, box{0, 0, wide, high}.corners())
	return p
}

// number is a length with two digits behind the point, and none that say nothing.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// path is lines from point to point.
func (p *paper) path(points []point) string {
	var b strings.Builder
	for i, at := range points {
		b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0] + number(at.x) + " " + number(p.high-at.y))
	}
	return b.String()
}

func (p *paper) fill(with ink, corners []point) {
	fmt.Fprintf(p, `<path d="%sZ" fill="#%06x"/>`+"\n", p.path(corners), uint32(with))
}

// stroke draws lines, each from point to point.
func (p *paper) stroke(with pen, lines ...[]point) {
	var d, dash strings.Builder
	for _, line := range lines {
		d.WriteString(p.path(line))
	}
	for i, v := range with.dash {
		dash.WriteString(map[bool]string{true: ` stroke-dasharray="`, false: ","}[i == 0] + number(v))
	}
	if dash.Len() > 0 {
		dash.WriteByte('"')
	}
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="#%06x" stroke-width="%s"%s/>`+"\n", d.String(), uint32(with.ink),
		number(with.width), dash.String())
}

// outline draws a closed line.
func (p *paper) outline(with pen, corners []point) {
	p.stroke(with, append(corners[:len(corners):len(corners)], corners[0]))
}

// ring draws a circle; a disk is one that is filled.
func (p *paper) ring(with pen, at point, radius float64, filled bool) {
	fill := "none"
	if filled {
		fill = fmt.Sprintf("#%06x", uint32(with.ink))
	}
	fmt.Fprintf(p, `<circle cx="%s" cy="%s" r="%s" fill="%s" stroke="#%06x" stroke-width="%s"/>`+"\n", number(at.x),
		number(p.high-at.y), number(radius), fill, uint32(with.ink), number(with.width))
}

// style is how a line of text looks.
type style struct {
	size  float64 // in points
	bold  bool
	align alignment
	ink   ink
	up    bool // the line goes upwards
	halo  bool // white around the letters, where lines may cross them
}

// alignment says where on a line of text its place is.
type alignment float64

const (
	left   alignment = 0
	centre alignment = 0.5
	right  alignment = 1
)

// rise is how far the baseline is below the middle of digits and capital letters.
func (s style) rise() float64 { return 0.36 * s.size }

// write puts one line of text with its baseline at that height. The element says how wide the
// line is in Liberation Sans, so that it takes that room where a browser takes another font.
func (p *paper) write(s style, at point, line string) {
	if line == "" {
		return
	}
	wide := s.wide(line)
	x, y, more := at.x, p.high-at.y, ""
	if s.up {
		y += wide * float64(s.align)
		more = fmt.Sprintf(` transform="rotate(-90 %s %s)"`, number(x), number(y))
	} else {
		x -= wide * float64(s.align)
	}
	if s.bold {
		more += ` font-weight="bold"`
	}
	if s.halo {
		more += ` stroke="#ffffff" stroke-width="2" paint-order="stroke"`
	}
	if s.ink != black {
		more += fmt.Sprintf(` fill="#%06x"`, uint32(s.ink))
	}
	fmt.Fprintf(p, `<text textLength="%s" lengthAdjust="spacingAndGlyphs" x="%s" y="%s" font-size="%s"%s>%s</text>`+"\n",
		number(wide), number(x), number(y), number(s.size), more, html.EscapeString(line))
}

// widths.txt has the width of characters in Liberation Sans 2.1.5, regular and bold, in units of
// which 2048 are the size of the font. Arial and Helvetica are as wide.
//
//go:embed widths.txt
var widthsText string

// em is the size of a font in the units of its widths.
const em = 2048

var widths = sync.OnceValue(func() map[rune][2]float64 {
	out := map[rune][2]float64{}
	for line := range strings.Lines(widthsText) {
		r, n := utf8.DecodeRuneInString(line)
		var w [2]float64
		if _, err := fmt.Sscanf(line[n:], ",%g,%g", &w[0], &w[1]); err != nil {
			panic(fmt.Sprintf("plots: widths.txt: %q: %v", line, err))
		}
		out[r] = w
	}
	return out
})

// wide is how wide a line of text is. A character without a width takes that of an m.
func (s style) wide(line string) (out float64) {
	for _, r := range line {
		w, ok := widths()[r]
		if !ok {
			w = widths()['m']
		}
		if s.bold {
			w[0] = w[1]
		}
		out += w[0] * s.size / em
	}
	return out
}

// fit is the style, its letters made smaller where the line would be wider than that: down to
// two thirds, which can still be read.
func (s style) fit(line string, wide float64) style {
	if w := s.wide(line); w > wide {
		s.size *= max(wide/w, 2.0/3)
	}
	return s
}
