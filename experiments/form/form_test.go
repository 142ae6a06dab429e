// SPDX-License-Identifier: Apache-2.0

package form

import (
	"errors"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

var base = template.New("").Funcs(Funcs())

// report is the least that a file needs below its declarations.
const report = `---
{{define "question"}}Why?{{end}}
{{define "about"}}It counts.{{end}}
{{define "headline"}}None{{end}}
`

// example is the one of the documents.
func example(t testing.TB) string {
	b, err := os.ReadFile("../../docs/experiment-files.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```experiment\n(.*?)```").FindStringSubmatch(string(b))
	if m == nil {
		t.Fatal("no example")
	}
	return m[1]
}

func TestParse(t *testing.T) {
	text := strings.Replace(example(t), `{{template "comparisons" .Comparisons}}`, "", 1)
	f, err := Parse("slots", []byte(text), base)
	if err != nil {
		t.Fatal(err)
	}
	g := f.Grid
	if f.Name != "slots" || g.Mode != "count" || len(g.Axes) != 4 || !g.Axis("protocol").Fixed || g.Axis("order").Fixed ||
		g.Axis("buffer").Values != "128,256,512,dynamic" || g.Axis("arch") != nil {
		t.Errorf("%+v %+v", f, g)
	}
	if c := f.Columns[5]; c.Name != "each" || c.Kind != results.Number || c.From.Text != "patches / rounds" ||
		c.Doc != "records that one round serves, on average" || c.Detail || c.Line != 16 {
		t.Errorf("%+v", c)
	}
	c := f.Charts[0]
	if l := c.Layers[0]; l.Mark != plots.Lying || l.By.Text != "order" || l.Format != "thousands" || c.X.Log || c.Alone {
		t.Errorf("%+v", c)
	}
	row := Row{"source": "a table", "patches": int64(341), "buffer": "170", "rounds": int64(9)}
	fig := f.Figures[0]
	what, err := f.Fill(fig.What, row)
	if v, _ := fig.Published.Eval(row); v != 9.0 || what != "rounds of a table with 170 slots, by the formula" || err != nil ||
		!fig.Exact {
		t.Errorf("%v, %q, %v", v, what, err)
	}
	if s, err := f.Part("question", nil); err != nil || s != "How many slots does a table need before its rounds are few?" {
		t.Errorf("%q, %v", s, err)
	}
}

// TestWrong: a file that cannot be understood is refused with its line and with what is
// wanted there.
func TestWrong(t *testing.T) {
	const good = "name: a\ngrid: count\n  order: table\ncolumns:\n  rounds\n"
	if _, err := Parse("f", []byte(good+report), base); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                      "f:1: no report",
		good:                                    "f:5: no report",
		"grid: count\n" + report:                "f:1: no name",
		"name: a\ngrid: count\n" + report:       "f:1: no columns",
		"name: A b\n" + report:                  `f:1: name "A b": want small letters`,
		"name: a\nname: b\n" + report:           "f:2: a second name",
		"name: a\n  b\n" + report:               "f:2: name has one value",
		"  x\n":                                 `f:1: "x" is indented`,
		"nmae: a\n":                             `f:1: "nmae": not one of name`,
		"nothing\n":                             `f:1: "nothing": not one of name`,
		"name: \xff\n":                          "f:1: not UTF-8",
		good + "---\n\xff":                      "f:7: the report is not UTF-8",
		good + "---\n{{end}}":                   "f:7: unexpected {{end}}",
		good + "---\n\n{{nosuch 1}}":            `f:8: function "nosuch" not defined`,
		good + "---\n":                          "f:7: the report defines no question",
		strings.Repeat("x", 1001):               "f:1: 1001 bytes in a line",
		strings.Repeat("#\n", 131073):           "f:1: 262146 bytes",
		"name: a\ngrid: cuont\n" + report:       `f:2: grid "cuont": want count or run`,
		good + "grid: run\n" + report:           "f:6: a second grid",
		"grid: count\n  order table\n" + report: `f:2: "order table": want an axis`,
		"grid: count\n  order: table\n  order = sorted\n" + report: "f:3: a second order",
		"beside: x\n" + report:                                               "f:1: beside: no grid",
		good + "beside: 1\n" + report:                                        `f:6: beside "1": want a name`,
		"points: x\n" + report:                                               "f:1: points: no grid",
		good + "points:\n  a,b\n" + report:                                   "f:6: points: want a line of names",
		good + "points:\n  a,b\n  1\n" + report:                              "f:8: 1 values: want 2",
		good + "points:\n  a,b\n  \"1\n" + report:                            `f:8: extraneous or missing " in quoted-field`,
		"name: a\nflags:\n  Rounds\n" + report:                               `f:3: flag "Rounds": want NAME for FIELD`,
		good + "flags:\n  rounds = 1\n" + report:                             "f:7: flags: those of a grid are its axes",
		good + "columns: x\n  a\ncolumns: x\n  b\n" + report:                 "f:8: columns: a second table x",
		good + "columns:\n  rounds\n" + report:                               "f:7: a second column rounds",
		"columns:\n  Rounds\n" + report:                                      `f:2: column "Rounds": want a name`,
		"columns:\n  rounds big\n" + report:                                  `f:2: column rounds: "big": want text`,
		"columns:\n  rounds = 1 +\n" + report:                                `f:2: expression "1 +": expected operand`,
		"columns:\n  rounds = f(1)\n" + report:                               `f:2: expression "f(1)": want names`,
		"columns:\n  rounds = min(1)\n" + report:                             `f:2: expression "min(1)": min takes 2 values`,
		"name: a\ncolumns:\n  rounds if x\n" + report:                        "f:3: column rounds: if x: there is no such column",
		"must: a > 1\n" + report:                                             "f:1: must: want a condition",
		"chart: X\n  title: t\n" + report:                                    `f:1: chart: "X": want nothing`,
		"chart:\n  titel: t\n" + report:                                      `f:2: chart: "titel": not one of`,
		"chart:\n  title: t\n  title: t\n" + report:                          "f:3: chart: a second title",
		"chart:\n  title: t\n" + report:                                      "f:1: chart: want title and draw",
		"chart:\n  title: t\n  draw: lyin\n" + report:                        `f:3: draw "lyin": not one of`,
		"chart:\n  title: t\n  draw: lying\n" + report:                       "f:3: chart: want x and y on the axis or on this line",
		"chart:\n  title: t\n  draw: line x=a y=b z=c\n" + report:            `f:3: draw: "z": want one each`,
		"chart:\n  title: t\n  draw: line x=a x=b\n" + report:                `f:3: draw: "x": want one each`,
		"chart:\n  title: t\n  draw: line x=`a\n" + report:                   "f:3: draw: x: a quote is open",
		"chart:\n  title: t\n  draw: line x=a y=b low=c\n" + report:          "f:3: draw: low goes with high",
		"chart:\n  title: t\n  only: x\n" + report:                           `f:3: only "x": want a column`,
		"chart: x\n  title: t\n  of: y\n" + report:                           `f:3: chart: of y: no table above`,
		"figure:\n  what: t\n  of: y\n" + report:                             `f:3: figure: of y: no table above`,
		"figure: x\n" + report:                                               `f:1: figure: "x": want nothing`,
		"figure:\n  what: x\n" + report:                                      "f:1: figure: want what, published and ours",
		"figure:\n  exact: maybe\n" + report:                                 `f:2: figure: exact "maybe": want yes or no`,
		good + "figure:\n  what: {{.x\n  published: 1\n  ours: 2\n" + report: "f:7: unclosed action",
	} {
		_, err := Parse("f", []byte(text), base)
		var wrong *inputs.ParseError
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

func TestExpr(t *testing.T) {
	row := Row{"a": int64(7), "b": 2.5, "s": "x", "yes": true, "none": nil, "u": uint64(3), "f": "3*ceil(a/2)", "x.a": int64(1),
		"loop": "calc(loop)"}
	for text, want := range map[string]any{
		"a": 7.0, "a + b*2": 12.0, "(a+b)*2": 19.0, "a - b": 4.5, "-a / 2": -3.5, "a/0": nil, "none + 1": nil, "-none": nil,
		`s + "y"`: "xy", "s + a": "x7", `s == "x"`: true, `s != "x"`: false, "a == 7": true, `none == ""`: true, `none != ""`: false,
		"a > 7": false, "a >= 7": true, "a < 7": false, "a <= 7": true, "a > 6 && yes": true, "a > 7 || yes": true,
		"a > 7 && yes": false, "a > 7 || none": false, "!yes": false, "!none": true, `!""`: true, "none > 1": nil,
		"ceil(b)": 3.0, "floor(b)": 2.0, "round(2.4)": 2.0, "log2(8)": 3.0, "min(a, b)": 2.5, "max(a, b)": 7.0, "max(none, 1)": nil,
		"u": 3.0, "x.a": 1.0, "calc(f)": 12.0, `number("5.5")`: 5.5, "number(a)": 7.0, "1_000": 1000.0, "true": true, "false": false,
		"log2(0)": nil, `either(a > 3, "yes", none)`: "yes", "either(a > 9, f, none)": nil, "either(none, 1, b)": 2.5,
	} {
		e, err := ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if v, err := e.Eval(row); err != nil || v != want {
			t.Errorf("%s: %v, %v; want %v", text, v, err, want)
		}
	}
	for text, want := range map[string]string{
		"c": "there is no column c", "s - 1": "not both numbers", "ceil(s)": "is no number", "calc(loop)": "does not stand inside",
		"calc(s)": "there is no column x", `number("z")`: "invalid syntax", "y.a": "there is no column y.a",
	} {
		e, err := ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := e.Eval(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	e, err := ParseExpr("min(a, x.a) + a*b - calc(f)")
	if got := e.Names(); err != nil || !slices.Equal(got, []string{"a", "x.a", "b", "f"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"a.b.c", "func(){}", "a[1]", "a % b", "+a", "'x'", "a.b()", "f(a)", "&a", "", "calc(a, b)"} {
		if _, err := ParseExpr(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

var rows = Rows{
	{"key": "a", "by": "x", "n": int64(3), "m": 1.5}, {"key": "a", "by": "y", "n": int64(5), "m": nil},
	{"key": "b", "by": "y", "n": int64(1), "m": 2.25}, {"key": "b", "by": "x", "n": int64(5), "m": 0.5},
}

func TestRows(t *testing.T) {
	most, err := rows.Most("n")
	least, err2 := rows.Least("n")
	if err != nil || err2 != nil || most["by"] != "y" || most["key"] != "a" || least["key"] != "b" {
		t.Errorf("%v, %v; %v, %v", most, least, err, err2)
	}
	if some, err := rows.Where(`key == "b" && n < 5`); err != nil || len(some) != 1 || some.First()["n"] != int64(1) {
		t.Errorf("%v, %v", some, err)
	}
	if none, err := rows.Where("n > 5"); err != nil || none.First() != nil {
		t.Errorf("%v, %v", none, err)
	}
	if v, err := rows.Distinct("n * 2"); err != nil || !slices.Equal(v, []any{6.0, 10.0, 2.0}) {
		t.Errorf("%v, %v", v, err)
	}
	for _, call := range []func(string) error{
		func(s string) error { _, err := rows.Where(s); return err },
		func(s string) error { _, err := rows.Most(s); return err },
		func(s string) error { _, err := rows.Distinct(s); return err },
		func(s string) error { _, err := rows.Table(s); return err },
		func(s string) error { _, err := rows.Pivot(s, "by", "n"); return err },
		func(s string) error { _, err := rows.Pivot("key", s, "n"); return err },
		func(s string) error { _, err := rows.Pivot("key", "by", s); return err },
	} {
		for _, wrong := range []string{"nosuch", "1 +"} {
			if call(wrong) == nil {
				t.Errorf("%s is taken", wrong)
			}
		}
	}
	if m, err := rows.Most("m"); err != nil || m["m"] != 2.25 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestTables(t *testing.T) {
	got, err := rows.Table("key", "all = n*1000 | thousands", "m")
	want := Table{Columns: []string{"key", "all", "m"}, Rows: [][]string{{"a", "3,000", "1.5"}, {"a", "5,000", ""},
		{"b", "1,000", "2.25"}, {"b", "5,000", "0.5"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	got, err = rows.Pivot("letter = key", "by", "n of %s = n;m")
	want = Table{Columns: []string{"letter", "n of x", "m", "n of y", "m"}, Rows: [][]string{{"a", "3", "1.5", "5", ""},
		{"b", "5", "0.5", "1", "2.25"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	groups, err := rows.Group("key;by")
	if err != nil || len(groups) != 4 || groups[3].First()["key"] != "b" {
		t.Errorf("%v, %v", groups, err)
	}
	if groups, err = rows.Group("key"); err != nil || len(groups) != 2 || len(groups[0]) != 2 {
		t.Errorf("%v, %v", groups, err)
	}
	by, err := ParseExpr("n")
	if err != nil {
		t.Fatal(err)
	}
	sorted, err := rows.sorted(by)
	if err != nil || sorted[0]["n"] != rows[2]["n"] || len(sorted) != len(rows) {
		t.Errorf("%v, %v", sorted, err)
	}
	if _, err := rows.Table("n | nosuch"); err == nil {
		t.Error("a format that is none is taken")
	}
	want = Table{Title: "T", Columns: []string{"a|b"}, Rows: [][]string{{"1"}}}
	if got := want.String(); got != "### T\n\n| a\\|b |\n|---|\n| 1 |\n" {
		t.Error(got)
	}
}

func TestChart(t *testing.T) {
	f, err := Parse("f", []byte("name: a\ncolumns:\n  n integer\nchart: -end\n  title: T {{.}}\n  x: n log : slots\n  y: by\n"+
		"  where: n < 9\n  only: key = {{.}}\n  alone: yes\n  draw: lying by=by label=n format=thousands\n"+
		"  draw: points y=n low=n-1 high=n+1 name=\"all of\" where=`n > 3`\n"+report), base)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Charts[0].Draw(rows, func(text *Text) (string, error) { return f.Fill(text, "b") })
	if err != nil {
		t.Fatal(err)
	}
	if c.Title != "T b" || c.X.Label != "slots" || !c.X.Log || c.Y.Log || !slices.Equal(c.Y.Names, []string{"y", "x"}) || !c.Alone ||
		len(c.Series) != 3 {
		t.Fatalf("%+v", c)
	}
	if s := c.Series[0]; s.Name != "y" || s.X[0] != 1 || s.Y[0] != 0 || s.Labels[0] != "1" || s.Kind != plots.Lying || s.Low != nil {
		t.Errorf("%+v", s)
	}
	if s := c.Series[2]; s.Name != "all of" || len(s.X) != 1 || s.Y[0] != 5 || s.Low[0] != 4 || s.High[0] != 6 {
		t.Errorf("%+v", s)
	}
}

type inner struct{ Update float64 }

type sample struct {
	*inner
	Name     string
	Rounds   int
	Maybe    *float64
	Modelled *inner
	Kind     plots.Mark
	Is       bool
}

func (s *sample) RoundsSaved() int       { return 2 * s.Rounds }
func (s sample) Kinds() template.FuncMap { return nil }

func TestBind(t *testing.T) {
	f, err := Parse("f", []byte("name: a\ncolumns:\n  name\n  rounds integer\n  rounds_saved integer\n  maybe number\n"+
		"  update_ns number = Modelled.Update\n  own number = Update\n  half number if Is = rounds / 2\n  more integer if maybe = rounds + 1\n"+report), base)
	if err != nil {
		t.Fatal(err)
	}
	columns, _, err := Bind[*sample](f.Columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	half := 0.5
	for _, tt := range []struct {
		row  sample
		want string
	}{
		{sample{Name: "n", Rounds: 3}, "n,3,6,,,,,"},
		{sample{Rounds: 3, Maybe: &half, Modelled: &inner{4}, inner: &inner{5}, Is: true}, ",3,6,0.5,4,5,1.5,4"},
	} {
		cells, err := columns.Row(&tt.row)
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, v := range cells {
			got = append(got, v.String())
		}
		if s := strings.Join(got, ","); s != tt.want {
			t.Errorf("%s, want %s", s, tt.want)
		}
	}
	for _, wrong := range []string{"nosuch", "x = nosuch + 1", "x = Modelled.Nothing", "x = Name.Length", "rounds if Nothing"} {
		c, err := column(wrong)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Bind[*sample]([]Column{c}, nil); err == nil {
			t.Errorf("%s is bound", wrong)
		}
	}
}

// TestDoc: every word of the form is explained.
func TestDoc(t *testing.T) {
	b, err := os.ReadFile("../../docs/experiment-files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(b), "## What a file says")
	words := slices.Concat(keys, slices.Collect(maps.Keys(marks)), []string{"text", "integer", "number", "boolean"}, parts,
		slices.Collect(maps.Keys(functions)), slices.Collect(maps.Keys(results.Say)), []string{calc, numberOf, either, "hidden", "if", "detail", "lead",
			"title", "subtitle", "where", "only", "alone", "draw", "format", "by", "low", "high", "label", "what", "published", "ours",
			"exact", "source", ".Table.Where", ".Table.Most", ".Least", ".First", ".Table.Distinct", ".Table.Group", "sort", ".Set"})
	for _, w := range words {
		if !regexp.MustCompile("`([^`\n]* )?"+regexp.QuoteMeta(w)+"[: `,]").MatchString(doc) && !strings.Contains(doc, "`"+w) {
			t.Errorf("%s is not explained", w)
		}
	}
}

// FuzzParse: whatever a file holds, it is a form or an error in one line; what is a form
// draws and prints nothing that hangs or panics.
func FuzzParse(f *testing.F) {
	f.Add(strings.Replace(example(f), `{{template "comparisons" .Comparisons}}`, "", 1))
	f.Add("name: a\ngrid: run\n  order: table + sorted\nbeside: x\n  order = sorted\npoints:\n  a,\"b,c\"\n  1,2\ncolumns:\n  a\nmust: a : no\n" + report)
	f.Add("name: a\ncolumns:\n  a = ((((1))))\nchart:\n  title: t\n  draw: line x=n y=by by=\"a b\"\n" + report)
	row := Row{"n": int64(3), "by": "x", "a": math.Pi, "none": nil}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "range") || strings.Contains(text, "template") {
			t.Skip("a template can go round for ever")
		}
		form, err := Parse("f", []byte(text), base)
		if err != nil {
			if s := err.Error(); strings.ContainsRune(s, '\n') || !strings.HasPrefix(s, "f:") {
				t.Errorf("%q", s)
			}
			return
		}
		for i := range form.Charts {
			_, _ = form.Charts[i].Draw(Rows{row, row}, func(*Text) (string, error) { return "", nil })
		}
		for _, c := range form.Columns {
			if c.From != nil {
				_, _ = c.From.Eval(row)
			}
		}
	})
}
