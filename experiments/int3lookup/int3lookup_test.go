// SPDX-License-Identifier: Apache-2.0

package int3lookup

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bisect counts the probes of a binary search by playing it.
func bisect(n, want int) (probes int) {
	lo, hi := 0, n-1
	for {
		probes++
		mid := lo + (hi-lo+1)/2
		switch {
		case mid == want:
			return probes
		case mid < want:
			lo = mid + 1
		default:
			hi = mid - 1
		}
	}
}

// walkCost plays the walk over groups: is the address above the first of a group,
// and then below its last?
func walkCost(b int3.Batch) (total, most int) {
	starts := append([]int{0}, b.Starts...)
	for slot, at := range b.Addrs {
		cost := 0
		for g, first := range starts {
			end := len(b.Addrs)
			if g+1 < len(starts) {
				end = starts[g+1]
			}
			cost++
			if at < b.Addrs[first] {
				continue
			}
			cost++
			if at > b.Addrs[end-1] {
				continue
			}
			cost += bisect(end-first, slot-first)
			break
		}
		total, most = total+cost, max(most, cost)
	}
	return total, most
}

func mean(t *testing.T, r *trial.Result, row int) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r.Cell(t, row, "comparisons_mean"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestComparisons holds the counts against searches that are played.
func TestComparisons(t *testing.T) {
	r := trial.Must(t, Experiment, "--patches", "1,7,56,1000,5000", "--groups", "1,2,5,40", "--no-time")
	checked := map[string]int{}
	for i := range r.Table.Rows {
		kind := r.Cell(t, i, "lookup")
		n, _ := strconv.Atoi(r.Cell(t, i, "patches"))
		var total, most int
		switch kind {
		case "vector":
			for slot := range n {
				p := bisect(n, slot)
				total, most = total+p, max(most, p)
			}
		case "groups":
			g, err := strconv.Atoi(r.Cell(t, i, "groups"))
			if err != nil {
				t.Fatal(err)
			}
			b, err := batchOf(t.Context(), int3.Groups, n, g, 1)
			if err != nil || len(b.Starts) != g-1 {
				t.Fatalf("%d groups, %v", len(b.Starts)+1, err)
			}
			total, most = walkCost(b)
		default:
			if r.Cell(t, i, "groups") != "" || mean(t, r, i) < 1 {
				t.Errorf("%v", r.Table.Rows[i])
			}
			continue
		}
		checked[kind]++
		if got, want := mean(t, r, i), float64(total)/float64(n); got != want ||
			r.Cell(t, i, "comparisons_max") != strconv.Itoa(most) {
			t.Errorf("%s of %d: %v, most %s; want %v, %d", kind, n, got, r.Cell(t, i, "comparisons_max"), want, most)
		}
		if r.Cell(t, i, "find_ns") != "" {
			t.Error("a time without having asked for one")
		}
	}
	// 1 patch is in 1 group, 7 in up to 5: 1 + 3 + 4 + 4 + 4 walks.
	if checked["vector"] != 5 || checked["groups"] != 16 {
		t.Errorf("%v were checked", checked)
	}
}

// TestCrossings: with one group less the walk does not lose yet.
func TestCrossings(t *testing.T) {
	c := &Config{Lookups: []int3.Lookup{int3.BTree, int3.Vector, int3.Groups, int3.Hash}}
	crossings, err := c.cross(t.Context(), 2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	walk := func(g int) float64 {
		b, err := batchOf(t.Context(), int3.Groups, 2000, g, 1)
		if err != nil {
			t.Fatal(err)
		}
		total, _ := walkCost(b)
		return float64(total) / 2000
	}
	for _, c := range crossings {
		if c.Groups == 0 || walk(c.Groups) <= c.Rivals || walk(c.Groups) != c.Walk {
			t.Errorf("%s: crossing at %d groups, where the walk takes %v", c.Rival, c.Groups, walk(c.Groups))
		}
		for g := 1; g < c.Groups; g++ {
			if walk(g) > c.Rivals {
				t.Errorf("%s: the walk loses at %d groups already", c.Rival, g)
			}
		}
		// A vector is searched like a single group, which takes two comparisons more.
		if c.Rival == int3.Vector && (c.Groups != 1 || math.Abs(c.Walk-c.Rivals-2) > 1e-9) {
			t.Errorf("vector: crossing at %d groups with %v against %v", c.Groups, c.Walk, c.Rivals)
		}
	}
	if len(crossings) != 3 {
		t.Errorf("%d crossings", len(crossings))
	}
}

// TestTimes: medians lie in their intervals, and what takes longer takes longer.
func TestTimes(t *testing.T) {
	r := trial.Must(t, Experiment, "--patches", "20000", "--groups", "1,400", "--lookup", "groups", "--repeats", "6")
	var medians []float64
	for i := range r.Table.Rows {
		var v [3]float64
		for k, column := range []string{"find_low_ns", "find_ns", "find_high_ns"} {
			var err error
			if v[k], err = strconv.ParseFloat(r.Cell(t, i, column), 64); err != nil {
				t.Fatal(err)
			}
		}
		if v[0] > v[1] || v[1] > v[2] || v[0] <= 0 {
			t.Errorf("%v", v)
		}
		medians = append(medians, v[0]) // the least disturbed
	}
	if medians[1] <= medians[0] {
		t.Errorf("400 groups take %v ns, one takes %v", medians[1], medians[0])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := timeFinds(ctx, int3.Build(int3.Vector, int3.Batch{Addrs: []records.Addr{1}}), []records.Addr{1}, 6,
		1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time")
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	if timed := trial.Must(t, Experiment, "--patches", "20", "--groups", "1", "--repeats",
		"6"); !strings.Contains(string(timed.Document(t, "report.md")), "Times on this machine") {
		t.Error("a report with times does not say whose they are")
	}
	r.Figure(t)
}

func TestWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--repeats=5", "want 6 or more"},
		{"--patches=0", "want whole numbers from 1"},
		{"--lookup=btre", "did you mean btree"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
	one := trial.Must(t, Experiment, "--lookup", "vector", "--no-time", "--patches", "5")
	if one.Headline != "There is nothing to compare the walk over groups with" {
		t.Errorf("%q", one.Headline)
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) {
	trial.CutShort(t, Experiment)
}
