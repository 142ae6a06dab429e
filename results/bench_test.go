// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchfmt"
	"pgregory.net/rapid"
)

// benchmarks reads a text as benchstat does.
func benchmarks(t rapid.TB, text []byte) (all []*benchfmt.Result) {
	t.Helper()
	r := benchfmt.NewReader(bytes.NewReader(text), "table")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			all = append(all, rec.Clone())
		case *benchfmt.SyntaxError:
			t.Fatalf("%v in\n%s", rec, text)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWriteBench(t *testing.T) {
	tab := Table{
		Name: "run-all",
		Columns: []Column{{Name: "arch"}, {Name: "calibration"}, {Name: "sites", Kind: Integer, Axis: true},
			{Name: "seed", Kind: Integer, Axis: true}, {Name: "rounds", Kind: Integer}, {Name: "update_ns", Kind: Number},
			{Name: "buffer_bytes", Kind: Integer}, {Name: "stops", Kind: Integer, Detail: true}},
	}
	for _, row := range [][]any{
		{"x86_64", "refcount-480", 1, 7, 504, 2.5e9, 4096, 0}, {"x86_64", "a b/c", 2, 8, 3, Empty, Empty, 0},
		{"x86_64", Empty, 2, 8, Empty, Empty, Empty, 0},
	} {
		if err := tab.Add(row...); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := Write(&b, FormatBench, tab); err != nil {
		t.Fatal(err)
	}
	const want = `arch: x86_64

BenchmarkRunAll/calibration=refcount-480/sites=1 1 504 rounds 2.5e+09 update-ns 4096 buffer-B
BenchmarkRunAll/calibration=a_b_c/sites=2 1 3 rounds
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	all := benchmarks(t, b.Bytes())
	if len(all) != 2 || all[0].GetConfig("arch") != "x86_64" {
		t.Fatalf("%d results of %q", len(all), all[0].GetConfig("arch"))
	}
	if sec, is := all[0].Value("update-sec"); !is || sec != 2.5 {
		t.Errorf("%v s", sec)
	}
}

// TestBenchOfAnyTable: whatever the cells are, what is written is read back, value by value,
// and no end of a name is taken for a number of processors.
func TestBenchOfAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t)
		tab.Name = "any"
		var b bytes.Buffer
		if err := Write(&b, FormatBench, tab); err != nil {
			t.Fatal(err)
		}
		all := benchmarks(t, b.Bytes())
		for _, row := range tab.Rows {
			var figures []float64
			for i, c := range tab.Columns {
				if f, is := row[i].Number(); is && c.Figure() {
					figures = append(figures, f)
				}
			}
			if len(figures) == 0 {
				continue
			}
			if len(all) == 0 {
				t.Fatal("a row is missing")
			}
			if len(all[0].Values) != len(figures) {
				t.Fatalf("%d values of %d", len(all[0].Values), len(figures))
			}
			for i, f := range figures {
				if all[0].Values[i].Value != f {
					t.Fatalf("%v came back as %v", f, all[0].Values[i].Value)
				}
			}
			if _, parts := all[0].Name.Parts(); len(parts) > 0 && parts[len(parts)-1][0] == '-' &&
				string(parts[len(parts)-1]) != "-1" {
				t.Fatalf("processors in %s", all[0].Name)
			}
			all = all[1:]
		}
		if len(all) > 0 {
			t.Fatalf("%d results too many", len(all))
		}
	})
}
