// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type name string

type numbered int

func (numbered) String() string { return "a name" }

func TestValueOf(t *testing.T) {
	for _, c := range []struct {
		in   any
		want Value
		text string
	}{
		{"x", String("x"), "x"},
		{name("x"), String("x"), "x"},
		{-3, Int(-3), "-3"},
		{int64(math.MinInt64), Int(math.MinInt64), "-9223372036854775808"},
		{uint64(math.MaxUint64), Uint(math.MaxUint64), "18446744073709551615"},
		{0.1, Float(0.1), "0.1"},
		{1e6, Float(1e6), "1000000"},
		{1e21, Float(1e21), "1e+21"},
		{1e20, Float(1e20), "100000000000000000000"},
		{1e300, Float(1e300), "1e+300"},
		{1e-9, Float(1e-9), "1e-09"},
		{true, Bool(true), "true"},
		{false, Bool(false), "false"},
		{Empty, Empty, ""},
		{Int(7), Int(7), "7"},
	} {
		got, err := ValueOf(c.in)
		if err != nil || got != c.want || got.String() != c.text {
			t.Errorf("ValueOf(%v) = %v %q, %v; want %q", c.in, got, got, err, c.text)
		}
	}
	if Int(0) == Empty || String("") == Empty || Bool(false) == Empty {
		t.Error("a zero is not the same as a cell that does not apply")
	}
}

func TestValueOfRefuses(t *testing.T) {
	for _, x := range []any{nil, time.Second, numbered(1), math.NaN(), math.Inf(1), Float(math.NaN()), []int{1},
		float32(1)} {
		if v, err := ValueOf(x); err == nil {
			t.Errorf("ValueOf(%T %v) = %v, want an error", x, x, v)
		}
	}
}

func twoColumns() Table {
	return Table{Name: "two", Columns: []Column{{Name: "a"}, {Name: "b_ns", Kind: Number}}}
}

func TestRowsFitColumns(t *testing.T) {
	tab := twoColumns()
	for _, cells := range [][]any{{}, {"x"}, {"x", 2, 3}, {"x", nil}, {"x", math.NaN()}, {1, 2}, {"x", "2"}, {"x", true}} {
		if err := tab.Add(cells...); !errors.Is(err, ErrRow) {
			t.Errorf("Add(%v) = %v, want ErrRow", cells, err)
		}
	}
	if len(tab.Rows) != 0 {
		t.Errorf("refused rows stayed: %v", tab.Rows)
	}
	for _, f := range formats {
		var b bytes.Buffer
		bad := twoColumns()
		bad.Rows = [][]Value{{String("x"), Int(2)}, {String("x")}}
		if err := Write(&b, f, bad); !errors.Is(err, ErrRow) || b.Len() > 0 {
			t.Errorf("%s: a short row wrote %q and returned %v", f, b.String(), err)
		}
		w, err := Look{}.NewWriter(&b, f, bad.Columns)
		if err != nil {
			t.Fatal(err)
		}
		before := b.String()
		if err := w.Add([]Value{Empty}); !errors.Is(err, ErrRow) || b.String() != before {
			t.Errorf("%s: streaming a short row wrote %q and returned %v", f, b.String(), err)
		}
	}
}

func TestColumnsAreChecked(t *testing.T) {
	for _, columns := range [][]Column{nil, {{Name: ""}}, {{Name: "Upper"}}, {{Name: "a b"}}, {{Name: "a"}, {Name: "a"}},
		{{Name: "a__b"}}} {
		for _, f := range formats {
			if _, err := (Look{}).NewWriter(&bytes.Buffer{}, f, columns); !errors.Is(err, ErrColumns) {
				t.Errorf("%s %v: %v, want ErrColumns", f, columns, err)
			}
			if err := Write(&bytes.Buffer{}, f, Table{Columns: columns}); !errors.Is(err, ErrColumns) {
				t.Errorf("%s %v: %v, want ErrColumns", f, columns, err)
			}
		}
	}
}

// drawTable makes any table: any columns, any cells. Carriage returns are left
// out of texts because readers of CSV fold them.
func drawTable(t *rapid.T) Table {
	n := rapid.IntRange(1, 5).Draw(t, "columns")
	tab := Table{}
	for i := range n {
		kind := rapid.SampledFrom([]Kind{Text, Integer, Number, Boolean}).Draw(t, "kind")
		tab.Columns = append(tab.Columns, Column{Name: "c" + strconv.Itoa(i), Kind: kind})
	}
	return drawRows(t, tab)
}

// drawRows adds any rows.
func drawRows(t *rapid.T, tab Table) Table {
	texts := rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\r", "") })
	integers := rapid.OneOf(rapid.Map(rapid.Int64(), Int), rapid.Map(rapid.Uint64(), Uint))
	cells := map[Kind]*rapid.Generator[Value]{
		Text: rapid.Map(texts, String), Integer: integers, Boolean: rapid.Map(rapid.Bool(), Bool),
		Number: rapid.OneOf(integers, rapid.Map(rapid.Float64(), Float)),
	}
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		var row []Value
		for _, c := range tab.Columns {
			row = append(row, rapid.OneOf(rapid.Just(Empty), cells[c.Kind]).Draw(t, "cell"))
		}
		tab.Rows = append(tab.Rows, row)
	}
	return tab
}

func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t)
		var b bytes.Buffer
		if err := WriteCSV(&b, tab); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(records) != len(tab.Rows)+1 {
			t.Fatalf("%d records for %d rows and a header", len(records), len(tab.Rows))
		}
		for i, row := range tab.Rows {
			for j, v := range row {
				checkCell(t, v, records[i+1][j])
			}
		}
	})
}

// checkCell makes sure that a number reads back as the very same number.
func checkCell(t *rapid.T, v Value, got string) {
	if got != v.String() {
		t.Fatalf("cell %q came back as %q", v, got)
	}
	if want, is := v.Any().(float64); is {
		if f, err := strconv.ParseFloat(got, 64); err != nil || f != want {
			t.Fatalf("float %v came back as %v, %v", want, f, err)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t)
		var b bytes.Buffer
		if err := Write(&b, FormatJSON, tab); err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(&b)
		d.UseNumber()
		var rows []map[string]any
		if err := d.Decode(&rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(tab.Rows) {
			t.Fatalf("%d objects for %d rows", len(rows), len(tab.Rows))
		}
		for i, row := range tab.Rows {
			for j, v := range row {
				got, present := rows[i][tab.Columns[j].Name]
				if !present || (got == nil) != v.IsEmpty() {
					t.Fatalf("cell %q came back as %v, present %v", v, got, present)
				}
				if n, ok := got.(json.Number); ok && n.String() != v.String() {
					t.Fatalf("number %v came back as %v", v, n)
				}
			}
		}
	})
}

func TestExactTexts(t *testing.T) {
	tab := twoColumns()
	for _, row := range [][]any{{"x,\"y\" <&>", 0.25}, {Empty, int64(5)}, {"true", Empty}} {
		if err := tab.Add(row...); err != nil {
			t.Fatal(err)
		}
	}
	for f, want := range map[Format]string{
		FormatCSV: "a,b_ns\n\"x,\"\"y\"\" <&>\",0.25\n,5\ntrue,\n",
		FormatJSON: "[\n{\"a\":\"x,\\\"y\\\" " +
			"<&>\",\"b_ns\":0.25},\n{\"a\":null,\"b_ns\":5},\n{\"a\":\"true\",\"b_ns\":null}\n]\n",
	} {
		var b bytes.Buffer
		if err := Write(&b, f, tab); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
	var b bytes.Buffer
	if err := Write(&b, FormatJSON, twoColumns()); err != nil || b.String() != "[]\n" {
		t.Errorf("no rows as JSON: %q, %v", b.String(), err)
	}
}

// What was added is already out, also before Close.
func TestRowsAreStreamed(t *testing.T) {
	for f, want := range map[Format]string{FormatCSV: "a,b_ns\n1,2\n", FormatJSON: "[\n{\"a\":\"1\",\"b_ns\":2}"} {
		var b bytes.Buffer
		w, err := Look{}.NewWriter(&b, f, twoColumns().Columns)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add([]Value{String("1"), Int(2)}); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s after one row: %q, want %q", f, b.String(), want)
		}
	}
}

// A stream gives the same bytes as the whole table at once, in every format.
func TestStreamEqualsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t)
		for _, f := range formats {
			var whole, stream bytes.Buffer
			if err := Write(&whole, f, tab); err != nil {
				t.Fatal(err)
			}
			w, err := Look{}.NewWriter(&stream, f, tab.Columns)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range tab.Rows {
				if err := w.Add(row); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if whole.String() != stream.String() {
				t.Fatalf("%s: %q at once, %q in a stream", f, whole.String(), stream.String())
			}
		}
	})
}

type failing struct{ after int }

func (f *failing) Write(b []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("no space left")
	}
	return len(b), nil
}

func TestWriteErrorsComeBack(t *testing.T) {
	for _, f := range formats {
		for after := range 3 {
			tab := twoColumns()
			for range 5 {
				if err := tab.Add("1", 2); err != nil {
					t.Fatal(err)
				}
			}
			err := Write(&failing{after: after}, f, tab)
			if (f == FormatTable || f == FormatBench) && after > 0 {
				continue // one write
			}
			if err == nil || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("%s, failing after %d writes: %v", f, after, err)
			}
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"table", "csv", "json", "", "CSV", "xml", "csv "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var set Format
		err := set.Set(s)
		if known := slices.Contains(formats, Format(s)); known != (err == nil) || known && set != Format(s) {
			t.Fatalf("Set(%q) gave %v, %v", s, set, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "table, csv, json") || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("the error does not list the formats on one line: %v", err)
		}
	})
}

// formats are all of them.
var formats = []Format{FormatTable, FormatCSV, FormatJSON, FormatBench}

func TestUnknownFormatIsRefused(t *testing.T) {
	if err := Write(&bytes.Buffer{}, "xml", twoColumns()); err == nil {
		t.Error("Write took the format xml")
	}
	if _, err := (Look{}).NewWriter(&bytes.Buffer{}, "xml", twoColumns().Columns); err == nil {
		t.Error("NewWriter took the format xml")
	}
	if got := Format("").String(); got != "table" {
		t.Errorf("the zero format is %q", got)
	}
}
