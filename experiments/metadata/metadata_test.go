// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	tables "github.com/textpoke/textpoke/tracers/metadata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCounts holds the counts against what is known of chains, of linear probing and
// of an array.
func TestCounts(t *testing.T) {
	r := trial.Must(t, Experiment, "--functions", "1,1000,20000", "--no-time")
	if len(r.Table.Rows) != 3*len(tables.KindNames()) {
		t.Fatalf("%d rows", len(r.Table.Rows))
	}
	for i := range r.Table.Rows {
		kind, n := r.Cell(t, i, "table"), r.Number(t, i, "functions")
		if r.Cell(t, i, "hot_ns") != "" || r.Cell(t, i, "repeats") != "" || r.Cell(t, i, "heap_bytes_per_function") != "" {
			t.Error("a time without having asked for one")
		}
		if strings.HasSuffix(kind, "map") {
			if r.Cell(t, i, "comparisons_mean") != "" {
				t.Errorf("%s has counts", kind)
			}
			continue
		}
		comparisons, loads, lines := r.Number(t, i, "comparisons_mean"), r.Number(t, i, "loads_mean"), r.Number(t, i,
			"lines_mean")
		want := map[string][3]float64{
			"fixed-256": {1 + (n-1)/512, 3 + (n-1)/512, 3 + (n-1)/512}, "fixed-1024": {1 + (n-1)/2048, 3 + (n-1)/2048,
				3 + (n-1)/2048},
			"resizable": {1.25, 4, 2.1}, "padding": {1, 3, 3},
		}[kind]
		for k, got := range []float64{comparisons, loads, lines} {
			if math.Abs(got-want[k]) > 0.25*want[k] || kind == "padding" && got != want[k] {
				t.Errorf("%s, %v functions: %v of comparisons, loads, lines; want about %v", kind, n, got, want[k])
			}
		}
	}
}

// TestPublished: 1000/12.151 and so on, by hand.
func TestPublished(t *testing.T) {
	pairs, err := readPairs("", 43871)
	if err != nil || len(pairs) != 2 {
		t.Fatal(pairs, err)
	}
	for i, want := range []struct{ fixed, grown, ratio float64 }{{82.2977, 21.5605, 3.8171}, {103.4447, 40.9182, 2.5281}} {
		p := pairs[i]
		if math.Abs(p.Fixed-want.fixed) > 1e-3 || math.Abs(p.Resizable-want.grown) > 1e-3 ||
			math.Abs(p.Fixed/p.Resizable-want.ratio) > 1e-3 || p.Buckets != 256 {
			t.Errorf("%+v", p)
		}
	}
	r := trial.Must(t, Experiment, "--no-time")
	// 60.7372 ns on top of 40.9182 are 2.4844 times that; 62.5265 on top of 21.5605 3.9000.
	if b := r.Figures; len(b) != 4 || math.Abs(b[1].Ours-3.9000) > 1e-3 || math.Abs(b[3].Ours-2.4844) > 1e-3 ||
		math.Abs(b[0].Ours-86.684/1.2306) > 1e-2 /* 1 + 43,870/512 comparisons */ {
		t.Errorf("%+v", b)
	}
	// 124.5 ns over 43,870/512 comparisons.
	if !strings.Contains(string(r.Document(t, "report.md")), "kprobe-multi at 1.45 ns") {
		t.Error("the report does not say what a comparison takes elsewhere")
	}
}

// TestTimes: medians lie in their intervals, and long chains take longer.
func TestTimes(t *testing.T) {
	r := trial.Must(t, Experiment, "--functions", "1,10000", "--all", "10000", "--table", "fixed-256,resizable,sync-map",
		"--repeats", "6")
	for i := range r.Table.Rows {
		for _, c := range [][3]string{{"hot_low_ns", "hot_ns", "hot_high_ns"}, {"random_low_ns", "random_ns",
			"random_high_ns"}, {"hot_of_one_low", "hot_of_one", "hot_of_one_high"}} {
			low, mid, high := r.Number(t, i, c[0]), r.Number(t, i, c[1]), r.Number(t, i, c[2])
			if low > mid || mid > high || low <= 0 {
				t.Errorf("%s: %v, %v, %v", c[1], low, mid, high)
			}
		}
		heap := r.Cell(t, i, "heap_bytes_per_function")
		if few := r.Number(t, i, "functions") < 1000; r.Cell(t, i, "repeats") != "6" || few != (heap == "") ||
			!few && r.Number(t, i, "heap_bytes_per_function") < 40 {
			t.Errorf("%v", r.Table.Rows[i])
		}
	}
	// Rows 3 and 4: 10,000 functions. 20 comparisons take longer than one.
	if r.Number(t, 3, "hot_low_ns") <= r.Number(t, 4, "hot_low_ns") || r.Number(t, 3, "hot_of_one") < 2 {
		t.Errorf("%v\n%v", r.Table.Rows[3], r.Table.Rows[4])
	}
	report := string(r.Document(t, "report.md"))
	for _, want := range []string{"Times on this machine", "### How long it takes", "with the difference measured here"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if len(r.Document(t, "time.svg")) == 0 {
		t.Error("no picture of times")
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time")
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

func TestWrong(t *testing.T) {
	file := func(rows string) string {
		name := filepath.Join(t.TempDir(), "mine.csv")
		if err := os.WriteFile(name, []byte("bench,table,mps\n"+rows), 0o666); err != nil {
			t.Fatal(err)
		}
		return "--published=" + name
	}
	for _, tt := range [][2]string{
		{"--repeats=5", "want 6 or more"},
		{"--functions=0", "want whole numbers from 1"},
		{"--all=0", "want whole numbers from 1"},
		{"--table=pading", "did you mean padding"},
		{file("x,256 fixed buckets,fast\n"), `mine.csv:2: mps "fast": want a number`},
		{file("x,257 fixed buckets,1\n"),
			`mine.csv:2: table "257 fixed buckets": want resizable, or "N fixed buckets" with a power of two`},
		{file("x,256 fixed bucketsful,1\n"), `mine.csv:2: table "256 fixed bucketsful"`},
		{file("x,rhashtable,1\n"), `mine.csv:2: table "rhashtable"`},
		{file("x,256 fixed buckets,1\nx,512 fixed buckets,1\n"),
			`mine.csv:3: table "512 fixed buckets": x has 256 fixed buckets already`},
		{file("x,256 fixed buckets,1\n"), "mine.csv:2: x: want it with a fixed number of buckets and resizable"},
		{file("x,resizable,1\nx,resizable,2\n"), "mine.csv:3: \"x resizable\": line 2 is about the same"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v, want %s", tt[0], r.Err, tt[1])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := trial.RunWith(ctx, t, Experiment, "--functions", "5", "--all", "5"); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("cancelled: %v", r.Err)
	}
	maps := trial.Must(t, Experiment, "--table", "sync-map", "--no-time", "--functions", "5", "--all", "5")
	if maps.Headline != "No table that was asked for says what it does" {
		t.Errorf("%q", maps.Headline)
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) {
	trial.CutShort(t, Experiment, "--no-time", "--functions", "4")
}
