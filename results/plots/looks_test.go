// SPDX-License-Identifier: Apache-2.0

package plots

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/textpoke/textpoke/internal/golden"
)

// TestLooks: pictures that people have looked at, of each look and of texts that make way for each other; of bars that
// stand alone; and of what is written at the ends of axes.
func TestLooks(t *testing.T) {
	looks := &Chart{Title: "Looks", X: Axis{Label: "x"}, Y: Axis{Label: "y"}}
	for i := range 8 {
		y := float64(20 * i)
		looks.Series = append(looks.Series, Series{Name: fmt.Sprintf("series %d of eight", i), Kind: []Mark{Line,
			Points}[i%2],
			X: []float64{0, 1, 1.02}, Y: []float64{y, y + 5, y + 6}, Labels: []string{"left", "near", "by"}})
	}
	for name, c := range map[string]*Chart{
		"looks": looks,
		"alone": {Title: "Alone", Alone: true, X: Axis{Names: []string{"a", "b"}}, Y: Axis{Label: "y"}, Series: []Series{
			{Name: "line", Kind: Curve, X: []float64{0, 1}, Y: []float64{1, 2}},
			{Name: "first", Kind: Bars, X: []float64{0}, Y: []float64{10}},
			{Name: "second", Kind: Bars, X: []float64{1}, Y: []float64{-3}},
		}},
		"lines-and-bars": {Title: "Lines and lying bars", X: Axis{Label: "x"}, Y: Axis{Names: []string{"a", "b", "c", "d",
			"e"}},
			Series: []Series{
				{Kind: Lying, X: []float64{1, 2}, Y: []float64{0, 1}, Labels: []string{"one", "1,234,567 of them"}},
				{Kind: Points, X: []float64{1, 2}, Y: []float64{0, 1}},
				{Kind: Lying, X: []float64{1, 2}, Y: []float64{0, 1}},
			}},
		"names": {Title: "Names", X: Axis{Names: []string{"a <", "b"}}, Y: Axis{Names: []string{"x", "y"}}, Series: []Series{
			{Kind: Steps, X: []float64{0, 1}, Y: []float64{0, 1}, Labels: []string{"", "\u2603"}}}},
	} {
		var svg bytes.Buffer
		if err := c.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name+".svg"), svg.Bytes())
		wide, high := c.size()
		within(t, name, svg.Bytes(), wide, high)
	}
}

// TestSides: how many bars stand beside each other.
func TestSides(t *testing.T) {
	for kinds, want := range map[string][2]int{"": {0, 0}, "b": {1, 1}, "bb": {2, 1}, "lbl": {1, 1}, "lll": {0, 0},
		"ybylb": {4, 1}} {
		var c Chart
		for _, k := range kinds {
			c.Series = append(c.Series, Series{Kind: map[rune]Mark{'b': Bars, 'y': Lying, 'l': Line}[k]})
		}
		n := c.bars()
		c.Alone = true
		if n != want[0] || c.bars() != want[1] {
			t.Errorf("%q: %d, and %d alone, want %v", kinds, n, c.bars(), want)
		}
	}
}

// TestTicks: marks up to both ends, labels where there is room.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		s    scale
		want string
	}{
		{scale{low: 0, high: 6}, "0 1 2 3 4 5 6"},
		{scale{low: 0, high: 5.9}, "0 1 2 3 4 5"},
		{scale{low: -1, high: 5}, "-1 0 1 2 3 4 5"},
		{scale{low: 1000, high: 7000}, "1,000 2,000 3,000 4,000 5,000 6,000 7,000"},
		{scale{low: 0, high: 6.1}, "0 2 4 6"},
		{scale{log: true, low: 1, high: 10}, "1 2 5 10"},
		{scale{log: true, low: 2, high: 20}, "2 5 10 20"},
		{scale{log: true, low: 1, high: 100}, "1 2 5 10 20 50 100"},
		{scale{log: true, low: 1, high: 200}, "1 _ _ 10 _ _ 100 _"},
		{scale{log: true, zero: true, low: 10, high: 20}, "0 10 20"},
		{scale{names: []string{"a", "b"}, log: true}, "a b"},
	} {
		var got []string
		for _, tick := range c.s.ticks() {
			if tick.label == "" {
				tick.label = "_"
			}
			got = append(got, tick.label)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v: %s", c.s, diff)
		}
	}
}

// TestAxes: where an axis begins and ends.
func TestAxes(t *testing.T) {
	for i, c := range []struct {
		a         Axis
		values    []float64
		low, high float64
		zero      bool
	}{
		{Axis{}, []float64{0, 100}, 0, 106, false},
		{Axis{}, []float64{49, 100}, 0, 103.06, false},
		{Axis{}, []float64{50, 100}, 47, 103, false},
		{Axis{}, []float64{-50, 50}, -56, 56, false},
		{Axis{}, []float64{7}, 7, 8, false},
		{Axis{}, []float64{0}, 0, 1, false},
		{Axis{}, nil, 0, 1, false},
		{Axis{Log: true}, []float64{3, 30}, 2, 50, false},
		{Axis{Log: true}, []float64{0, 3, 30}, 2, 50, true},
		{Axis{Log: true}, []float64{10}, 10, 100, false},
		{Axis{Log: true}, []float64{0}, 1, 10, true},
		{Axis{Names: []string{"a", "b"}, Log: true}, []float64{0}, -0.6, 1.6, false},
	} {
		var s span
		for _, v := range c.values {
			s.add(v)
		}
		got := c.a.scale(s)
		if math.Abs(got.low-c.low) > 1e-9 || math.Abs(got.high-c.high) > 1e-9 || got.zero != c.zero {
			t.Errorf("%d: %+v, want %v to %v, %v", i, got, c.low, c.high, c.zero)
		}
	}
	if got := (scale{log: true, zero: true, low: 2, high: 50}).at(-1); got != 0 {
		t.Errorf("-1 lies at %v", got)
	}
}

// TestMeets: boxes that only touch do not meet.
func TestMeets(t *testing.T) {
	for o, want := range map[box]int{{0, 0, 2, 2}: 1, {2, 0, 3, 2}: 0, {-1, 0, 0, 2}: 0, {0, 2, 2, 3}: 0, {0, -1, 2, 0}: 0,
		{1.9, 1.9, 3, 3}: 1, {-1, -1, 0.1, 0.1}: 1, {1.9, -1, 3, 0.1}: 1, {-1, 1.9, 0.1, 3}: 1, {-9, -9, 9, 9}: 1} {
		if got := meets(box{0, 0, 2, 2}, []box{o, o}); got != 2*want {
			t.Errorf("%v: %d, want %d", o, got, 2*want)
		}
	}
}

// TestRefused: each number that has no place, and lists of different lengths, whole.
func TestRefused(t *testing.T) {
	const lengths = `chart "T": series "s": values of different lengths`
	one, two, log := []float64{1}, []float64{1, 2}, Axis{Label: "a", Log: true}
	for i, c := range []struct {
		x, y Axis
		s    Series
		want string
	}{
		{log, log, Series{X: []float64{0}, Y: []float64{0}}, "<nil>"},
		{Axis{}, Axis{}, Series{X: []float64{-1}, Y: []float64{-1}}, "<nil>"},
		{log, log, Series{X: one, Y: one, Low: one, High: one, Labels: []string{""}}, "<nil>"},
		{log, log, Series{X: one, Y: two}, lengths},
		{log, log, Series{X: one, Y: one, Low: one}, lengths},
		{log, log, Series{X: one, Y: one, Low: two, High: one}, lengths},
		{log, log, Series{X: one, Y: one, Low: one, High: two}, lengths},
		{log, log, Series{X: one, Y: one, Labels: []string{}}, lengths},
		{log, Axis{}, Series{X: []float64{1, -2}, Y: two}, `chart "T": series "s": point 1: -2 has no place on the axis "a"`},
		{Axis{}, log, Series{X: one, Y: []float64{-2}}, `chart "T": series "s": point 0: -2 has no place on the axis "a"`},
		{Axis{Label: "b"}, log, Series{X: []float64{math.Inf(-1)}, Y: []float64{-2}},
			`chart "T": series "s": point 0: -Inf has no place on the axis "b"`},
		{Axis{Label: "b"}, log, Series{X: []float64{math.NaN()}, Y: one},
			`chart "T": series "s": point 0: NaN has no place on the axis "b"`},
	} {
		c.s.Name = "s"
		chart := &Chart{Title: "T", X: c.x, Y: c.y, Series: []Series{c.s}}
		if got := fmt.Sprint(chart.check()); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// exact is the number nearby for which a difference is 0, rounded as it is.
func exact(v float64, difference func(float64) float64) float64 {
	for range 99 {
		switch d := difference(v); {
		case d > 0:
			v = math.Nextafter(v, -1e9)
		case d < 0:
			v = math.Nextafter(v, 1e9)
		}
	}
	return v
}

// TestRoom: a text stands above its point on the right, and elsewhere where that would leave the frame; on its border
// it stays.
func TestRoom(t *testing.T) {
	const wide, high = 20.0, 8.0
	f := &frame{paper: &paper{wide: 300}, box: box{x0: 40, y0: 40, x1: 280, y1: 180}}
	free := f.room(point{100, 100}, wide, high)
	if free != (box{104, 102, 124, 110}) {
		t.Errorf("%v", free)
	}
	right, top := f.wide-margin/2, f.y1+3*Millimeter
	for i, c := range []struct {
		at   point
		want box
	}{
		{point{exact(right-24, func(x float64) float64 { return x + 4 + wide - right }), 100}, box{right - 20, 102, right,
			110}},
		{point{right - 23, 100}, box{right - 47, 102, right - 27, 110}},
		{point{100, exact(top-10, func(y float64) float64 { return y + 2 + high - top })}, box{104, top - 8, 124, top}},
		{point{100, top - 9}, box{104, top - 13, 124, top - 5}},
		{point{200, top + 2}, box{204, top - 8, 224, top}},
	} {
		got := f.room(c.at, wide, high)
		if math.Abs(got.x0-c.want.x0)+math.Abs(got.x1-c.want.x1)+math.Abs(got.y0-c.want.y0)+math.Abs(got.y1-c.want.y1) > 1e-9 {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	low := exact(f.y0-padding+10, func(y float64) float64 { return y - 2 - high - (f.y0 - padding) })
	for at, want := range map[point]box{{64, 100}: {40, 102, 60, 110}, {63, 100}: {53, 102, 73, 110},
		{100, low}: {104, low - 2 - high, 124, low - 2}} {
		f.taken = []box{{at.x + 12, at.y - 1, at.x + 30, at.y + 30}}
		if at.x == 100 {
			f.taken = []box{{0, at.y - 1, 300, at.y + 30}}
		}
		if got := f.room(at, wide, high); math.Abs(got.x0-want.x0)+math.Abs(got.y0-want.y0) > 1e-9 {
			t.Errorf("%v: %v, want %v", at, got, want)
		}
	}
	f.taken = []box{free}
	if got := f.room(point{100, 100}, wide, high); got != (box{76, 102, 96, 110}) {
		t.Errorf("beside a line: %v", got)
	}
	f.said, f.taken = []box{{76, 102, 96, 110}}, append(f.taken, free, free)
	if got := f.room(point{100, 100}, wide, high); got != (box{104, 90, 124, 98}) {
		t.Errorf("beside a text: %v", got)
	}
}

// TestLegend: a name that just fits into a row stays in it.
func TestLegend(t *testing.T) {
	c := &Chart{Series: []Series{{Name: "one"}, {}, {Name: "two"}}}
	each := 10.5*Millimeter + smallStyle.wide("one")
	x := margin + each + 5*Millimeter
	need := x + 10.5*Millimeter + smallStyle.wide("two")
	wide := exact(need+margin, func(wide float64) float64 { return wide - margin - need })
	one := c.legend(newPaper(wide, 100), 50)
	two := c.legend(newPaper(wide-0.001, 100), 50)
	if one != 50-smallRow+2*Millimeter || two != 50-smallRow-smallRow+2*Millimeter {
		t.Errorf("down to %v in one row, %v in two", one, two)
	}
	if none := (&Chart{Series: []Series{{}}}).legend(newPaper(wide, 100), 50); none != 50+2*Millimeter {
		t.Errorf("no names: %v", none)
	}
}
