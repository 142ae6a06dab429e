// SPDX-License-Identifier: Apache-2.0

package axis_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/sim/axis"
)

// numbered is a table of axes that take any number.
func numbered(n int) (t axis.Table[trip]) {
	for i := range n {
		t = append(t, axis.Field("n"+strconv.Itoa(i), "a number", strconv.Atoi, func(t *trip) *int { return &t.miles },
			strconv.Itoa))
	}
	return t
}

// TestPoints: lists multiply, up to the largest number and no further.
func TestPoints(t *testing.T) {
	under := []int{3, 3, 5, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1321} // 2^60-1
	for _, c := range []struct {
		lists  []int
		except []string
		want   int
	}{
		{nil, nil, 1},
		{[]int{2, 3, 1}, nil, 6},
		{[]int{2, 3, 1}, []string{"n1", "n9"}, 2},
		{append(under[:13:13], 8), nil, math.MaxInt - 7},
		{append(under[:13:13], 9), nil, math.MaxInt},
		{append(under[:13:13], 9, 2), nil, math.MaxInt},
	} {
		choices := axis.Choices{}
		for i, n := range c.lists {
			for v := range n {
				choices["n"+strconv.Itoa(i)] = append(choices["n"+strconv.Itoa(i)], strconv.Itoa(v))
			}
		}
		g, err := numbered(len(c.lists) + 1).Read(choices) // one more, of which nothing is chosen
		if err != nil || g.Points(c.except...) != c.want {
			t.Errorf("%v without %v: %v, %d points, want %d", c.lists, c.except, err, g.Points(c.except...), c.want)
		}
	}
}

// TestPresets: a list's default holds several values, that of another form is one; an axis in whose place something
// else
// is chosen has none.
func TestPresets(t *testing.T) {
	for _, c := range []struct {
		form axis.Form
		text string
		want []string
	}{{axis.List, "1,2", []string{"1", "2"}}, {axis.One, "1,2", []string{"1,2"}}, {axis.Repeat, "1,2", []string{"1,2"}},
		{axis.List, "", nil}, {axis.One, "", nil}} {
		a := axis.Axis[trip]{Spec: choice.Spec{Default: c.text}, Form: c.form}
		if diff := cmp.Diff(c.want, a.Presets()); diff != "" {
			t.Errorf("%v of %q: %s", c.form, c.text, diff)
		}
	}
	table := numbered(3)
	for i := range table {
		table[i].Default = "1,2"
	}
	table[2].Replaces, table[2].Default = "n0", ""
	for want, choices := range map[int]axis.Choices{4: {}, 2: {"n2": {"7"}}, 6: {"n1": {"1", "2", "3"}}} {
		if g, err := table.Read(choices); err != nil || g.Points() != want {
			t.Errorf("%v: %v, %+v, want %d", choices, err, g, want)
		}
	}
}

// TestSplit: what was given is split once, where something was.
func TestSplit(t *testing.T) {
	table := numbered(2)
	table[0].Split = func(given []string) ([]string, error) {
		if given[0] == "none" {
			return nil, errors.New("n0 none: no number")
		}
		return strings.Split(strings.Join(given, "+"), "+"), nil
	}
	for _, c := range []struct {
		choices axis.Choices
		want    string
	}{
		{axis.Choices{}, "1 map[]"},
		{axis.Choices{"n0": {"1+2", "3"}}, "3 map[n0:true]"},
		{axis.Choices{"n1": {"1"}}, "1 map[]"},
		{axis.Choices{"n0": {"none"}}, "n0 none: no number"},
	} {
		got := ""
		if g, err := table.Read(c.choices); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(g.Points(), " ", g.Several())
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.choices, got, c.want)
		}
	}
}

// TestNamed: an error begins with its axis once, and one about a line of a file with the file.
func TestNamed(t *testing.T) {
	said := map[string]error{
		"a.txt": errors.New("a.txt:3: no number"), "b.txt": errors.New("b.txt is empty"),
		"c.txt": &fs.PathError{Op: "open", Path: "c.txt", Err: fs.ErrNotExist},
		"other": errors.New("other:3: no number"), "own": errors.New("n0 is none"), "near": errors.New("n0x is none"),
	}
	table := numbered(1)
	table[0].NamesFile = func(v string) bool { return strings.HasSuffix(v, ".txt") }
	table[0].Parse = func(v string) (axis.Set[trip], error) { return nil, said[v] }
	for value, want := range map[string]string{
		"a.txt": "a.txt:3: no number", "b.txt": "n0 b.txt is empty", "c.txt": "n0: open c.txt: file does not exist",
		"other": "n0 other:3: no number", "own": "n0 is none", "near": "n0 n0x is none", "good": "<nil>",
	} {
		if _, err := table.Read(axis.Choices{"n0": {value}}); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
	g, err := append(table, numbered(2)[1]).Read(axis.Choices{"n0": {"f.txt", "good", "e.txt"}, "n1": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"f.txt", "e.txt"}, g.Files()); diff != "" {
		t.Error(diff)
	}
}

// TestOf: the axes of a part do for the whole what they do for the part.
func TestOf(t *testing.T) {
	type whole struct {
		name string
		trip trip
	}
	table := axis.Of(trips, func(w *whole) *trip { return &w.trip })
	g, err := table.Read(axis.Choices{"by": {"river", "road"}, "miles": {"7", "300"}, "fast": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := g.Cross([]whole{{name: "a"}}, func(_ string, so []whole) ([]whole, error) { return so, nil })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range all {
		got = append(got, all[i].name+" "+strings.Join(table.Flags(&all[i]), " "))
	}
	want := []string{"a --by river --miles 7", "a --by road --miles 7 --fast", "a --by road --miles 300 --fast"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := table.Read(axis.Choices{"miles": {"x"}}); err == nil ||
		err.Error() != `miles strconv.Atoi: parsing "x": invalid syntax` {
		t.Error(err)
	}
	for i, a := range table {
		of := trips[i]
		if a.Name != of.Name || a.Uses != of.Uses || a.ColumnName() != of.ColumnName() || a.Needs != of.Needs ||
			(a.Applies == nil) != (of.Applies == nil) {
			t.Errorf("%+v, of %+v", a, of)
		}
	}
	names := axis.Names("n", "a number", []string{"1", "2"}, strconv.Atoi, func(t *trip) *int { return &t.miles },
		strconv.Itoa)
	if names.Usage() != "`list` of a number: 1, 2" || names.Known("3") == nil || names.Known("2") != nil {
		t.Errorf("%s, %v", names.Usage(), names.Known("3"))
	}
	if names.Form = axis.One; names.Usage() != "a number: 1, 2" {
		t.Error(names.Usage())
	}
}

// TestCross: what fails is told, whether in a value or between two axes.
func TestCross(t *testing.T) {
	table, broken := numbered(2), errors.New("broken")
	read := func() *axis.Grid[trip] {
		g, err := table.Read(axis.Choices{"n0": {"1", "2"}, "n1": {"3"}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	var names []string
	for _, fails := range []string{"", "n0", "n1"} {
		_, err := read().Cross([]trip{{}}, func(name string, so []trip) ([]trip, error) {
			names = append(names, fmt.Sprint(name, len(so)))
			if name == fails {
				return nil, broken
			}
			return so, nil
		})
		if (fails == "") != (err == nil) || err != nil && !errors.Is(err, broken) {
			t.Errorf("%q: %v", fails, err)
		}
	}
	if diff := cmp.Diff([]string{"n02", "n12", "n02", "n02", "n12"}, names); diff != "" {
		t.Error(diff)
	}
	table[1].Parse = func(string) (axis.Set[trip], error) {
		return func(t *trip) error {
			if t.miles == 2 {
				return broken
			}
			return nil
		}, nil
	}
	if all, err := read().Cross([]trip{{}}, func(_ string, so []trip) ([]trip, error) { return so, nil }); all != nil ||
		!errors.Is(err, broken) {
		t.Errorf("%v, %v", all, err)
	}
}
