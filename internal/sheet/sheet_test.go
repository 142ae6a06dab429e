// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/inputs"
)

// hex is what a reader of its own understands.
type hex int

func (h *hex) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%x", (*int)(h)); err != nil {
		return errors.New("not hexadecimal")
	}
	return nil
}

type row struct {
	Line  int                `col:"#"`
	Name  string             `col:"name,key"`
	Kind  string             `col:"kind,key,maybe,a|b"`
	Note  string             `col:"note,optional"`
	On    bool               `col:"on"`
	Many  int                `col:"many"`
	More  int64              `col:"more,positive"`
	Above float64            `col:"above"`
	Zero  float64            `col:"zero,zero"`
	Maybe float64            `col:"maybe,maybe"`
	Given bool               `col:"maybe,known"`
	Some  Figure             `col:"some"`
	Hex   hex                `col:"hex,maybe"`
	Each  map[string]float64 `col:"one two"`
	own   int
}

func (r *row) Check() (column, reason string) {
	if r.own = r.Many * 2; r.Many == 13 {
		return "many", "brings bad luck"
	}
	return "", ""
}

const (
	header = "name,kind,note,on,many,more,above,zero,maybe,some,hex,one,two\n"
	good   = "n,a,x,yes,0,1,0.5,0,,,1f,1,2\n"
)

// TestRead: every kind of cell, in any order of the columns, and without what is optional.
func TestRead(t *testing.T) {
	want := []row{{Line: 2, Name: "n", Kind: "a", Note: "x", On: true, More: 1, Above: 0.5, Hex: 31, Each: map[string]float64{"one": 1, "two": 2}},
		{Line: 3, Name: "n", Many: 2, More: 2, Above: 1, Zero: 1, Maybe: 3, Given: true, Some: Figure{0, true},
			Each: map[string]float64{"one": 1, "two": 2}, Note: "y", own: 4}}
	got, err := Read[row]("f", strings.NewReader(header+good+"n,,y,no,2,2,1,1,3,0,,1,2\n"))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	turned := "two,one,hex,some,maybe,zero,above,more,many,on,kind,name\n2,1,1f,,,0,0.5,1,0,yes,a,n\n"
	want[0].Note = ""
	if got, err = Read[row]("f", strings.NewReader(turned)); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want[0])
	}
}

// TestWrong: what is wrong is named with file, line, column and value.
func TestWrong(t *testing.T) {
	columns := strings.TrimSpace(strings.ReplaceAll(header, "\n", ""))
	change := func(old, new string) string { return header + strings.Replace(good, old, new, 1) }
	for text, want := range map[string]string{
		"":     "f:1: the file is empty",
		header: "f:1: there are no rows",
		"a\n":  `f:1: "a": want the columns ` + columns,
		strings.Replace(header, "two", "one", 1) + good: `f:1: "` + inputs.Clip(strings.Replace(columns, "two", "one", 1), shown) + `": want the columns ` + columns,
		header + good + good:                            `f:3: "n a": line 2 is about the same`,
		change("n,", " ,"):                              `f:2: name " ": is missing`,
		change(",a,", ",c,"):                            `f:2: kind "c": want one of a, b`,
		change("yes", "on"):                             `f:2: on "on": want one of no, yes`,
		change(",0,1,", ",-1,1,"):                       `f:2: many "-1": want a whole number, 0 or more`,
		change(",0,1,", ",2147483648,1,"):               `f:2: many "2147483648": want a whole number, 0 or more`,
		change(",0,1,", ",13,1,"):                       `f:2: many "13": brings bad luck`,
		change(",0,1,", ",0,0,"):                        `f:2: more "0": want a whole number, 1 or more`,
		change("0.5", "0"):                              `f:2: above "0": want a number above 0`,
		change("0.5", "NaN"):                            `f:2: above "NaN": want a number above 0`,
		change("0.5", strings.Repeat("9", 400)):         `f:2: above "` + strings.Repeat("9", 60) + `...": want a number above 0`,
		change("0.5,0,", "0.5,-1,"):                     `f:2: zero "-1": want a number, 0 or more`,
		change("0.5,0,", "0.5,,"):                       `f:2: zero "": want a number, 0 or more`,
		change("0.5,0,,,", "0.5,0,x,,"):                 `f:2: maybe "x": want a number, 0 or more`,
		change("0.5,0,,,", "0.5,0,,x,"):                 `f:2: some "x": want a number, 0 or more, or nothing`,
		change("1f", "zz"):                              `f:2: hex "zz": not hexadecimal`,
		change("1,2\n", "1,0\n"):                        `f:2: two "0": want a number above 0`,
		change(",2\n", "\n"):                            "f:2: wrong number of fields",
		change("n,", `"n,`):                             `f:2: extraneous or missing " in quoted-field`,
	} {
		_, err := Read[row]("f", strings.NewReader(text))
		var p *inputs.ParseError
		if !errors.As(err, &p) || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	broken := io.MultiReader(strings.NewReader(header+good), failing{})
	if _, err := Read[row]("f", broken); err == nil || err.Error() != "read f: io: read/write on closed pipe" {
		t.Errorf("a reader that fails: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
