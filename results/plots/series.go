// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"cmp"
	"math"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
)

// look is how a series differs from the others: by colour, and for readers who see
// no colours by mark, dash and hatching.
type look struct {
	ink   ink
	mark  glyph
	dash  []float64
	hatch hatching
}

// The colours are those of Okabe and Ito, "Color Universal Design" (2008), which
// differ for every kind of colour vision. Yellow is left out: it is too light for
// lines on white.
var looks = []look{
	{0x0072b2, disk, nil, 0},
	{0xd55e00, square, []float64{6, 2}, rising},
	{0x009e73, triangle, []float64{1.5, 1.5}, level},
	{0xcc79a7, cross, []float64{6, 2, 1.5, 2}, rising | falling},
	{0xe69f00, pyramid, []float64{3, 1.5}, falling},
	{0x56b4e9, ring, []float64{10, 3}, level | rising},
	{0x000000, plus, []float64{1.5, 4}, level | falling},
}

func (l look) line() pen { return pen{l.ink, 1.1, l.dash} }

// glyph is the mark of a point.
type glyph uint8

const (
	disk glyph = iota
	square
	triangle
	cross
	pyramid
	ring
	plus
)

// glyph draws a mark.
func (p *paper) glyph(l look, at point) {
	const r = 2.4
	with := pen{ink: l.ink, width: 0.5}
	upright := []point{{at.x, at.y + r}, {at.x + r*math.Sqrt(3)/2, at.y - r/2}, {at.x - r*math.Sqrt(3)/2, at.y - r/2}}
	const d = r * math.Sqrt2 / 2
	switch l.mark {
	case disk, ring:
		p.ring(with, at, r, l.mark == disk)
	case square:
		p.outline(with, box{at.x - d, at.y - d, at.x + d, at.y + d}.corners())
	case triangle:
		p.outline(with, upright)
	case pyramid:
		p.fill(l.ink, upright)
	case cross:
		p.stroke(with, []point{{at.x - d, at.y - d}, {at.x + d, at.y + d}}, []point{{at.x - d, at.y + d}, {at.x + d, at.y - d}})
	case plus:
		p.stroke(with, []point{{at.x - r, at.y}, {at.x + r, at.y}}, []point{{at.x, at.y - r}, {at.x, at.y + r}})
	}
}

// drawn is a series in its chart: its bars are the bar-th of those at one place.
type drawn struct {
	*Series
	look look
	fill ink // of cells
	bar  int
}

// draw draws the series, without the texts at points.
func (f *frame) draw(d drawn) {
	var line []point
	for i := range d.X {
		at := point{f.x(d.X[i]), f.y(d.Y[i])}
		switch d.Kind {
		case Bars, Lying:
			at = f.drawBar(d, at)
			if d.Labels != nil {
				f.nameBar(d.Kind, at, d.Labels[i])
			}
		case Cells:
			f.drawCell(d, at, i)
		case Steps:
			if i > 0 {
				line = append(line, point{at.x, line[len(line)-1].y})
			}
		}
		line = append(line, at)
		if d.Low != nil {
			f.whisker(d.look, at.x, f.y(d.Low[i]), f.y(d.High[i]))
		}
	}
	if d.Kind == Line || d.Kind == Curve || d.Kind == Steps {
		f.stroke(d.look.line(), line)
		f.take(line)
	}
	for _, at := range line {
		if d.Kind == Line || d.Kind == Points {
			f.glyph(d.look, at)
			f.taken = append(f.taken, box{at.x - 3, at.y - 3, at.x + 3, at.y + 3})
		}
	}
}

// take notes where a line goes.
func (f *frame) take(line []point) {
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		n := math.Ceil(math.Hypot(b.x-a.x, b.y-a.y) / 2)
		for k := range int(n) {
			x, y := a.x+(b.x-a.x)*float64(k)/n, a.y+(b.y-a.y)*float64(k)/n
			f.taken = append(f.taken, box{x - 0.5, y - 0.5, x + 0.5, y + 0.5})
		}
	}
}

// texts writes what stands at points, the highest first, each where it meets the least of what is there.
func (f *frame) texts(s *Series) {
	if s.Kind == Bars || s.Kind == Lying || s.Kind == Cells {
		return
	}
	order := spelling.Numbers(len(s.Labels))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Y[b], s.Y[a]) })
	for _, i := range order {
		if s.Labels[i] != "" {
			b := f.room(point{f.x(s.X[i]), f.y(s.Y[i])}, pointStyle.wide(s.Labels[i]), pointStyle.size)
			f.said = append(f.said, b)
			halo := pointStyle
			halo.halo = true
			f.write(halo, point{b.x0, b.y0 + 0.2*pointStyle.size}, s.Labels[i])
		}
	}
}

// room is a place for a text beside a point: above it where nothing else is there.
func (f *frame) room(at point, wide, high float64) (best box) {
	least := math.MaxInt
	for _, up := range []float64{2, -high / 2, -2 - high, 5, -5 - high} {
		for _, from := range []float64{4, -4 - wide, -wide / 2} {
			b := box{at.x + from, at.y + up, at.x + from + wide, at.y + up + high}
			n := meets(b, f.taken) + 100*meets(b, f.said)
			if b.x0 < f.x0 || b.x1 > f.wide-margin/2 || b.y0 < f.y0-padding || b.y1 > f.y1+3*Millimeter {
				n += 1000
			}
			if n < least {
				best, least = b, n
			}
		}
	}
	return best
}

// meets counts the others that a box meets.
func meets(b box, others []box) int {
	return spelling.Count(others, func(o box) bool { return b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1 })
}

// whisker is an interval.
func (f *frame) whisker(l look, x, low, high float64) {
	const cap = 1.1 * Millimeter
	f.stroke(pen{ink: l.ink, width: 0.8}, []point{{x, low}, {x, high}}, []point{{x - cap, low}, {x + cap, low}},
		[]point{{x - cap, high}, {x + cap, high}})
}

// barWidth is how wide bars are, as long as there are few.
const barWidth = 5 * Millimeter

// drawBar draws one up to a point, and returns the middle of its end: bars of one place stand
// beside each other, the first one left or on top.
func (f *frame) drawBar(d drawn, to point) point {
	place := f.x(1) - f.x(0)
	if d.Kind == Lying {
		place = f.y(0) - f.y(1)
	}
	thick := min(barWidth, 0.8*place/float64(f.bars))
	half, shift := thick/2*0.92, (float64(d.bar)-float64(f.bars-1)/2)*thick
	if d.Kind == Lying {
		to.y -= shift
		f.swatch(d.look, box{f.x0, to.y - half, to.x, to.y + half})
	} else {
		to.x += shift
		f.swatch(d.look, box{to.x - half, f.y0, to.x + half, to.y})
	}
	return to
}

// nameBar writes a label at the end of a bar.
func (f *frame) nameBar(k Mark, at point, line string) {
	s := pointStyle
	if k == Lying {
		f.write(s, point{at.x + 1*Millimeter, at.y - s.rise()}, line)
		return
	}
	s.align = centre
	f.write(s, point{at.x, at.y + 0.8*Millimeter}, line)
}

// fills are the colours of cells: the first, which most cells have, is pale. The others are those of
// Okabe and Ito, and three more where these run out.
var fills = []ink{0xf0f0f0, 0xd55e00, 0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7, 0x56b4e9, 0xf0e442, 0x606060, 0x5e3c99,
	0xb8a07a, 0x6b4423, 0xc8c8c8}

// drawCell fills the box around a point, and writes its label into it.
func (f *frame) drawCell(d drawn, at point, i int) {
	const rim = 0.25 * Millimeter
	w, h := (f.x(1)-f.x(0))/2-rim, (f.y(0)-f.y(1))/2-rim
	corners := box{at.x - w, at.y - h, at.x + w, at.y + h}.corners()
	f.fill(d.fill, corners)
	f.outline(pen{ink: grey, width: 0.3}, corners)
	if d.Labels != nil {
		s := pointStyle
		s.align = centre
		if d.fill.dark() {
			s.ink = white
		}
		f.write(s, point{at.x, at.y - s.rise()}, d.Labels[i])
	}
}

// legend explains the series in rows, the first one at y, and returns how far down that comes.
func (c *Chart) legend(p *paper, y float64) float64 {
	const sample, between, behind = 9 * Millimeter, 5 * Millimeter, 1.5 * Millimeter
	x, any := margin, false
	for i, s := range c.Series {
		if s.Name == "" {
			continue
		}
		wide := sample + behind + smallStyle.wide(s.Name)
		if any && x+wide > p.wide-margin {
			x, y = margin, y-smallRow
		}
		any = true
		c.sample(p, i, point{x, y + 1*Millimeter}, sample)
		p.write(smallStyle, point{x + sample + behind, y}, s.Name)
		x += wide + between
	}
	if any {
		y -= smallRow
	}
	return y + 2*Millimeter
}

// sample shows how a series looks, from a point to the right.
func (c *Chart) sample(p *paper, i int, at point, wide float64) {
	l, k := looks[i%len(looks)], c.Series[i].Kind
	area := box{at.x + 2*Millimeter, at.y - 1.2*Millimeter, at.x + wide, at.y + 1.2*Millimeter}
	switch k {
	case Cells:
		p.fill(fills[i%len(fills)], area.corners())
		return
	case Bars, Lying:
		p.swatch(l, area)
		return
	case Line, Curve, Steps:
		p.stroke(l.line(), []point{at, {at.x + wide, at.y}})
	}
	if k == Line || k == Points {
		p.glyph(l, point{at.x + wide/2, at.y})
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
func (p *paper) swatch(l look, b box) {
	fill, with := l.ink, pen{ink: l.ink, width: 0.5}
	if l.hatch != 0 {
		fill = l.ink.pale()
	}
	p.fill(fill, b.corners())
	var lines [][]point
	w, h := b.x1-b.x0, b.y1-b.y0
	const every = 2.2 * Millimeter
	for off := -h; off < w; off += every { // a slanted line leaves the lower edge off from the left, and ends in the box
		from, to := max(0, -off), min(h, w-off)
		if l.hatch&rising != 0 {
			lines = append(lines, []point{{b.x0 + off + from, b.y0 + from}, {b.x0 + off + to, b.y0 + to}})
		}
		if l.hatch&falling != 0 {
			lines = append(lines, []point{{b.x0 + off + from, b.y1 - from}, {b.x0 + off + to, b.y1 - to}})
		}
	}
	for y := every / 3; l.hatch&level != 0 && y < h; y += every / 3 {
		lines = append(lines, []point{{b.x0, b.y0 + y}, {b.x1, b.y0 + y}})
	}
	if len(lines) > 0 {
		p.stroke(with, lines...)
	}
	p.outline(with, b.corners())
}
