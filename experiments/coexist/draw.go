// SPDX-License-Identifier: Apache-2.0

package coexist

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/tracers"
)

// Sizes on paper.
const (
	mm     = vg.Millimeter
	margin = 6 * mm
	head   = 15 * mm // title and what the matrix is
	label  = 34 * mm // of those who are there
	wide   = 11.5 * mm
	high   = 6 * mm
	top    = 27 * mm // names of those who come, upwards
	foot   = 12 * mm
)

// mark is how an answer looks: a colour, and letters for those who see no colours.
type mark struct {
	name      string
	fill, ink color.Color
}

// The colours are those of Okabe and Ito, "Color Universal Design" (2008).
func markOf(r *row) mark {
	white, black := color.White, color.Black
	switch {
	case r.Result == shared:
		return mark{"both are called", color.Gray{Y: 0xf4}, color.Gray{Y: 0x60}}
	case r.Result == silent:
		return mark{"attached, nobody is called", color.Gray{Y: 0xc8}, black}
	case r.Result == apart:
		return mark{"not through the tracer", rgb(0x56b4e9), black}
	case r.Result == unsupported:
		return mark{"the first is refused", color.Gray{Y: 0x60}, white}
	case r.Errno == tracers.EBUSY:
		return mark{"EBUSY", rgb(0xd55e00), white}
	case r.Errno == tracers.EINVAL:
		return mark{"EINVAL", rgb(0x0072b2), white}
	case r.Errno == tracers.EEXIST:
		return mark{"EEXIST", rgb(0xe69f00), black}
	case r.Errno == tracers.E2BIG:
		return mark{"E2BIG", rgb(0xcc79a7), black}
	}
	return mark{"another error", rgb(0x009e73), white}
}

func rgb(v uint32) color.Color { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

// page is the matrix of the first instruction set on its way to paper.
type page struct {
	a    answer
	arch string
	c    draw.Canvas
}

// picture is the matrix of the first instruction set that was asked about.
func (a answer) picture() plots.Picture {
	p := &page{a: a}
	if arches := a.Arches(); len(arches) > 0 {
		p.arch = arches[0]
	}
	return plots.Picture{
		Width:  max(2*margin+label+vg.Length(len(a.Config.Second))*wide, 180*mm),
		Height: 2*margin + head + top + vg.Length(len(a.Config.First))*high + foot,
		Draw:   p.draw,
	}
}

func (p *page) draw(c draw.Canvas) {
	p.c = c
	height := 2*margin + head + top + vg.Length(len(p.a.Config.First))*high + foot
	y := height - margin
	p.write(margin, y-4*mm, 11, true, text.XLeft, color.Black,
		"One changes the instruction pointer, one is called directly; everybody else shares")
	p.write(margin, y-9.5*mm, 8, false, text.XLeft, color.Black,
		"Who is there (down), who comes (across), "+p.arch+". A dot: another instruction set answers otherwise.")
	y -= head + top
	for j, second := range p.a.Config.Second {
		left := margin + label + vg.Length(j)*wide
		plots.Style{Size: 8, Ink: color.Black, Up: true}.Write(p.c, left+wide/2+1.8*mm, y+2*mm, second)
	}
	for _, first := range p.a.Config.First {
		y -= high
		p.write(margin, y+2*mm, 8, false, text.XLeft, color.Black, first)
		for j, second := range p.a.Config.Second {
			if r := p.a.at(p.arch, first, second); r != nil {
				p.cell(r, margin+label+vg.Length(j)*wide, y)
			}
		}
	}
	p.legend(margin, margin)
}

// cell draws one answer, its bottom left corner given.
func (p *page) cell(r *row, x, y vg.Length) {
	const rim = 0.3 * mm
	m := markOf(r)
	box := plots.Box(x+rim, y+rim, x+wide-rim, y+high-rim)
	p.c.FillPolygon(m.fill, box)
	p.c.StrokeLines(draw.LineStyle{Color: color.Gray{Y: 0x9a}, Width: 0.3}, append(box, box[0]))
	style := plots.Style{Size: 7, Align: text.XCenter, Ink: m.ink}.Fit(r.Cell(), wide-1.2*mm)
	style.Write(p.c, x+wide/2, y+2*mm, r.Cell())
	for _, arch := range p.a.Arches()[1:] {
		if other := p.a.at(arch, r.First, r.Second); other != nil && other.Cell() != r.Cell() {
			p.c.DrawGlyph(draw.GlyphStyle{Color: m.ink, Radius: 0.6 * mm, Shape: draw.CircleGlyph{}},
				vg.Point{X: x + wide - 1.6*mm, Y: y + high - 1.6*mm})
			return
		}
	}
}

// legend explains the marks that occur.
func (p *page) legend(x, y vg.Length) {
	seen := map[string]bool{}
	for i := range p.a.Rows {
		r := p.a.Rows[i]
		m := markOf(r)
		if r.Arch != p.arch || seen[m.name] {
			continue
		}
		seen[m.name] = true
		box := plots.Box(x, y+2*mm, x+7*mm, y+2*mm+4*mm)
		p.c.FillPolygon(m.fill, box)
		p.c.StrokeLines(draw.LineStyle{Color: color.Gray{Y: 0x9a}, Width: 0.3}, append(box, box[0]))
		style := plots.Style{Size: 7.5, Align: text.XLeft, Ink: color.Black}
		style.Write(p.c, x+8.5*mm, y+3*mm, m.name)
		x += 12*mm + style.Wide(m.name)
	}
}

// write puts one line of text with its baseline at y.
func (p *page) write(x, y vg.Length, size float64, bold bool, align text.XAlignment, ink color.Color, line string) {
	plots.Style{Size: size, Bold: bold, Align: align, Ink: ink}.Write(p.c, x, y, line)
}
