// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/golden"
)

// samples are charts of every kind.
func samples() map[string]*Chart {
	return map[string]*Chart{
		"lines": {
			Title: "One sort makes the order of a table cost nothing", Subtitle: "x86_64-6.12-modules, 44,444 records",
			X: Axis{Label: "slots of the buffer", Log: true}, Y: Axis{Label: "rounds (= interrupts per CPU)", Log: true},
			Series: []Series{
				{Name: "table", X: []float64{128, 170, 256, 1024}, Y: []float64{1056, 795, 528, 132}},
				{Name: "sorted", X: []float64{128, 170, 256, 1024}, Y: []float64{900, 700, 400, 3}, Low: []float64{800, 600, 300,
					2}, High: []float64{1000, 800, 500, 5}},
				{Name: "random", Kind: Steps, X: []float64{128, 170, 256, 1024}, Y: []float64{66000, 66001, 66000, 66000}},
				{Name: "points", Kind: Points, X: []float64{128, 170}, Y: []float64{0, 20}, Labels: []string{"none", "twenty"}},
			},
		},
		"bars": {
			Title: "Bars side by side, one series a group", X: Axis{Names: []string{"enable, old", "disable, old",
				"enable, new"}},
			Y: Axis{Label: "interrupts per CPU (count)"},
			Series: []Series{
				{Name: "rounds for records", Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{3, 3, 540},
					Labels: []string{"3", "3", "540"}},
				{Name: "other", Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{117, 112, 117}},
				{Name: "third", Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{50, 60, 70}},
				{Name: "fourth", Kind: Bars, X: []float64{0, 1, 2}, Y: []float64{150, 160, 170}},
			},
		},
		"cells": {
			Title: "Cells of a matrix", X: Axis{Names: []string{"one", "another one"}}, Y: Axis{Names: []string{"first", "second"}},
			Series: []Series{
				{Name: "both", Kind: Cells, X: []float64{0, 1}, Y: []float64{0, 1}, Labels: []string{"ok", "ok"}},
				{Name: "refused", Kind: Cells, X: []float64{1}, Y: []float64{0}, Labels: []string{"EBUSY"}},
			},
		},
		"lying": {
			Title: "Lying bars with a zero on a logarithmic axis", Y: Axis{Names: []string{"powerpc", "riscv64 6.16",
				"x86_64 5.5"}},
			X: Axis{Label: "interrupts per CPU for 45,000 sites (count)", Log: true},
			Series: []Series{
				{Kind: Lying, X: []float64{0, 45001, 528}, Y: []float64{0, 1, 2}, Labels: []string{"0", "45,001", "528"}},
			},
		},
	}
}

// TestSamples: charts come out with all their words, on the paper, and the same bytes every time: those of pictures that
// people have looked at.
func TestSamples(t *testing.T) {
	for name, c := range samples() {
		var svg, again bytes.Buffer
		for _, w := range []*bytes.Buffer{&svg, &again} {
			if err := c.WriteSVG(w); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(svg.Bytes(), again.Bytes()) {
			t.Errorf("%s: another SVG the second time", name)
		}
		for _, word := range append([]string{c.Title, c.X.Label, c.Y.Label}, append(c.X.Names, c.Y.Names...)...) {
			if !strings.Contains(svg.String(), word) {
				t.Errorf("%s: %q is missing", name, word)
			}
		}
		for _, s := range c.Series {
			for _, word := range append([]string{s.Name}, s.Labels...) {
				if !strings.Contains(svg.String(), ">"+word+"<") && word != "" {
					t.Errorf("%s: %q is missing", name, word)
				}
			}
		}
		golden.Check(t, filepath.Join("testdata", name+".svg"), svg.Bytes())
		wide, high := c.size()
		within(t, name, svg.Bytes(), wide, high)
	}
}

// within holds that every element lies on the paper, by another reader of the SVG.
func within(t *testing.T, name string, svg []byte, wide, high float64) {
	t.Helper()
	place := func(e xml.StartElement, of string) (out float64) {
		for _, a := range e.Attr {
			if a.Name.Local == of {
				out, _ = strconv.ParseFloat(a.Value, 64)
			}
		}
		return out
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			x, y, long := place(e, "x"), place(e, "y"), place(e, "textLength")
			right, top := x+long, y-place(e, "font-size")
			if place(e, "font-size") == 0 || strings.Contains(fmt.Sprint(e.Attr), "rotate") {
				right, top = x, y-long
			}
			if x < 0 || right > wide || top < 0 || y > high {
				t.Errorf("%s: a text from %v,%v to %v,%v is not on a paper of %v by %v", name, x, y, right, top, wide, high)
			}
		}
	}
}

// TestScales: values lie where they should.
func TestScales(t *testing.T) {
	l := scale{log: true, zero: true, low: 1, high: 100000}
	for v, want := range map[float64]float64{0: 0, 1: gap, 100000: 1} {
		if got := l.at(v); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v lies at %v, not %v", v, got, want)
		}
	}
	if a, b := l.at(10), l.at(100); math.Abs((b-a)-(1-gap)/5) > 1e-12 {
		t.Errorf("a decade is %v wide", b-a)
	}
	for _, tt := range []struct {
		v, below, above float64
	}{{1, 1, 1}, {3, 2, 5}, {10, 10, 10}, {0, 1, 1}, {0.7, 0.5, 1}, {45001, 20000, 50000}, {1056, 1000, 2000}, {600, 500,
		1000}} {
		if b, a := below(tt.v), above(tt.v); math.Abs(b-tt.below) > 1e-9*tt.below || math.Abs(a-tt.above) > 1e-9*tt.above {
			t.Errorf("%v lies between %v and %v", tt.v, b, a)
		}
	}
}

// TestFit: a title that is too long is set smaller, not cut off.
func TestFit(t *testing.T) {
	short, long := "Short", strings.Repeat("A title that is too long ", 5)
	const page = width - 2*margin
	if s := titleStyle.fit(short, page); s != titleStyle {
		t.Errorf("%+v", s)
	}
	if s := titleStyle.fit(long, page); s.size >= titleStyle.size || s.wide(long) > page+0.01 {
		t.Errorf("%+v: %v of %v", s, s.wide(long), page)
	}
}

// TestNothing: a chart of nothing is an empty chart.
func TestNothing(t *testing.T) {
	for _, c := range []*Chart{
		{},
		{X: Axis{Log: true}, Y: Axis{Names: []string{}}, Series: []Series{{Kind: Lying}}},
		{X: Axis{Names: []string{"a"}}, Series: []Series{{Kind: Bars, X: []float64{0}, Y: []float64{0}}, {Kind: Steps}}},
	} {
		var b bytes.Buffer
		if err := c.WriteSVG(&b); err != nil || b.Len() == 0 {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]*Chart{
		"lengths":   {Series: []Series{{X: []float64{1}, Y: nil}}},
		"intervals": {Series: []Series{{X: []float64{1}, Y: []float64{1}, Low: []float64{}}}},
		"labels":    {Series: []Series{{X: []float64{1}, Y: []float64{1}, Labels: []string{"a", "b"}}}},
		"NaN":       {Series: []Series{{X: []float64{math.NaN()}, Y: []float64{1}}}},
		"negative":  {Y: Axis{Log: true}, Series: []Series{{X: []float64{1}, Y: []float64{-1}}}},
	} {
		var b bytes.Buffer
		if c.WriteSVG(&b) == nil || b.Len() > 0 {
			t.Errorf("%s: nothing wrong", name)
		}
	}
}

// TestCurve: a curve is a line without the marks: the difference is one element a mark,
// in the chart and in its legend.
func TestCurve(t *testing.T) {
	paths := func(k Mark) int {
		var svg bytes.Buffer
		c := &Chart{Series: []Series{{Name: "s", Kind: k, X: []float64{1, 2, 3}, Y: []float64{1, 2, 3}}}}
		if err := c.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		return strings.Count(svg.String(), "<path") + strings.Count(svg.String(), "<circle")
	}
	if line, curve, points := paths(Line), paths(Curve), paths(Points); line-curve != 3+1 || line-points != 1+1 {
		t.Errorf("%d elements of a line, %d of a curve, %d of points", line, curve, points)
	}
}

// TestTextTakesTheRoomItWasMeasuredFor: every line of text says its width, also one with
// characters that SVG escapes. The widths are those of Liberation Sans: 2048 units of its
// files are the size, and A is 1366 of them, < is 1196; in bold, A is 1479.
func TestTextTakesTheRoomItWasMeasuredFor(t *testing.T) {
	p := newPaper(100, 100)
	p.write(style{size: 16}, point{}, "A<")
	p.write(style{size: 32, bold: true}, point{0, 50}, "A")
	for _, units := range []float64{16 * (1366 + 1196), 32 * 1479} {
		want := fmt.Sprintf(`<text textLength="%.2f" lengthAdjust="spacingAndGlyphs" x=`, units/2048)
		if !strings.Contains(p.String(), want) {
			t.Errorf("no %s in\n%s", want, p)
		}
	}
}
