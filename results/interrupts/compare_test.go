// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// snapshot is a reading of CPUs 0, 2 and 5, of rows "name description" with a count for each.
func snapshot(name string, rows map[string][]int64) Snapshot {
	s := Snapshot{Name: name, CPUs: []int{0, 2, 5}}
	var names []string
	for row := range rows {
		names = append(names, row)
	}
	slices.Sort(names)
	for i, row := range names {
		label, description, _ := strings.Cut(row, " ")
		s.Rows = append(s.Rows, Row{Name: label, Description: description, Counts: rows[row], Line: i + 2})
	}
	return s
}

const (
	callsRow = "CAL Function call interrupts"
	timer    = "LOC Local timer interrupts"
	moved    = "RES Rescheduling interrupts"
)

// TestSentences: what the growth of function calls says, in words and by CPU number, worked out
// by hand from d = R - s + b.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		delta              []int64
		sentence           string
		sentBy, left       string
		interrupts, rounds int64
		exact, follows     bool
	}{
		{[]int64{0, 0, 0}, "CAL: no rounds", "", "", 0, 0, true, true},
		{[]int64{7, 0, 7}, "CAL: 7 rounds, sent by CPU 2", "CPU 2", "", 14, 7, true, true},
		{[]int64{1, 1, 0}, "CAL: 1 round, sent by CPU 5", "CPU 5", "", 2, 1, true, true},
		{[]int64{4, 3, 7}, "CAL: 7 rounds, sent by CPU 2 (4), CPU 0 (3)", "CPU 2 (4), CPU 0 (3)", "", 14, 7, true, true},
		{[]int64{70, 0, 71}, "CAL: about 70 rounds, sent by CPU 2; left over: 1 on CPU 5", "CPU 2", "1 on CPU 5", 141, 70,
			false, true},
		{[]int64{40, 30, 71}, "CAL: about 70 rounds, sent by CPU 2 (40), CPU 0 (30); left over: 1 on CPU 5",
			"CPU 2 (40), CPU 0 (30)", "1 on CPU 5", 141, 70, false, true},
		{[]int64{0, 0, 657}, "CAL: the sum over 3 CPUs is no multiple of 2, as whole rounds would make it: 1 left over",
			"", "", 657, 0, false, false},
	} {
		before := snapshot("before", map[string][]int64{callsRow: {100, 200, 300}, timer: {5, 5, 5}})
		after := snapshot("after", map[string][]int64{callsRow: {100 + c.delta[0], 200 + c.delta[1], 300 + c.delta[2]},
			timer: {9, 9, 9}})
		rows, err := Compare(Pair{before, after}, Options{})
		if err != nil || len(rows) != 2 || rows[1].Explained || !rows[0].Explained {
			t.Fatalf("%v: %+v, %v", c.delta, rows, err)
		}
		r := &rows[0]
		if r.Sentence() != c.sentence || r.SentBy() != c.sentBy || r.LeftOver() != c.left ||
			r.Interrupts() != c.interrupts {
			t.Errorf("%v: %q, sent by %q, left over %q, %d interrupts, want %+v", c.delta, r.Sentence(), r.SentBy(),
				r.LeftOver(), r.Interrupts(), c)
		}
		if rounds, follows := r.About(); rounds != c.rounds || follows != c.follows || r.Known != (c.exact && c.follows) {
			t.Errorf("%v: about %d, %v, known %v, want %+v", c.delta, rounds, follows, r.Known, c)
		}
		rows, err = Compare(Pair{before, after}, Options{Exact: true})
		if err != nil || rows[0].Near != nil || rows[0].Known != (c.exact && c.follows) {
			t.Errorf("%v, exactly: %+v, %v", c.delta, rows[0], err)
		}
	}
	near := Comparison{RowDelta: RowDelta{Name: "CAL", CPUs: []int{0, 2, 5}},
		Near: &Nearest{0, make([]int64, 3), []int64{0, 2, 0}}}
	if got, want := near.Sentence(), "CAL: no rounds; left over: 2 on CPU 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSimpler: three strays on four CPUs make a round of a third sender fit. Both readings are told: two
// senders of 598 rounds, of which one interrupt came on each CPU but the last, and what fits exactly.
func TestSimpler(t *testing.T) {
	four := func(name string, counts ...int64) Snapshot {
		return Snapshot{Name: name, CPUs: []int{0, 1, 2, 3}, Rows: []Row{{Name: "CAL", Counts: counts, Description: "Function call interrupts"}}}
	}
	before, after := four("before", 0, 0, 0, 0), four("after", 598-400+1, 598-198+1, 598+1, 598)
	rows, err := Compare(Pair{before, after}, Options{})
	if err != nil || len(rows) != 1 || !rows[0].Consistent || rows[0].Rounds != 599 || rows[0].Senders != 3 {
		t.Fatalf("%+v, %v", rows, err)
	}
	const want = "598 rounds, sent by CPU 0 (401), CPU 1 (197); left over: 2 on CPU 0, 1 on CPU 2"
	if s := rows[0].Simpler; s == nil || s.Rounds != 598 || s.senders() != 2 || s.strays() != 3 ||
		rows[0].Reason != "simpler: "+want || !strings.HasSuffix(rows[0].Sentence(), "; or "+want) {
		t.Errorf("%+v: %s", s, rows[0].Sentence())
	}
	if rows, err = Compare(Pair{before, after}, Options{Exact: true}); err != nil || rows[0].Simpler != nil {
		t.Errorf("exactly: %+v, %v", rows, err)
	}
	// A sender of more rounds than strays could fake is one.
	if rows, err = Compare(Pair{before, four("moved", 198, 410, 598, 588)}, Options{}); err != nil || rows[0].Simpler != nil ||
		rows[0].Senders != 3 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestComparedRows: without names those rows are shown that changed, or that rounds should account
// for; with All, all; with names, those.
func TestComparedRows(t *testing.T) {
	before := snapshot("before", map[string][]int64{callsRow: {1, 1, 1}, timer: {5, 5, 5}, moved: {2, 2, 2}, "ERR": {0},
		"OLD": {1, 2, 3}})
	after := snapshot("after", map[string][]int64{callsRow: {1, 1, 1}, timer: {5, 5, 6}, moved: {2, 2, 2}, "ERR": {0},
		"NEW": {1, 2, 3}})
	for _, c := range []struct {
		options Options
		want    string // name, with ! if rounds were looked for
	}{
		{Options{}, "CAL! LOC OLD NEW"},
		{Options{All: true}, "CAL! ERR LOC OLD RES NEW"},
		{Options{Rows: []string{"RES"}}, "RES!"},
		{Options{Rows: []string{"LOC", "CAL"}}, "CAL! LOC!"},
		{Options{Rows: []string{"ERR"}, All: true}, "ERR!"},
	} {
		rows, err := Compare(Pair{before, after}, c.options)
		var names []string
		for _, r := range rows {
			name := r.Name
			if r.Explained {
				name += "!"
			}
			names = append(names, name)
			switch want := map[string]string{"OLD": "the row is missing after", "NEW": "the row is missing before"}[r.Name]; {
			case want != r.Reason && !r.Explained:
				t.Errorf("%+v: %s: %q, want %q", c.options, r.Name, r.Reason, want)
			case r.Name == "ERR" && r.Explained && !strings.Contains(r.Reason, "whole machine"):
				t.Errorf("%+v: ERR: %q", c.options, r.Reason)
			}
		}
		if got := strings.Join(names, " "); got != c.want || err != nil {
			t.Errorf("%+v: %s, %v, want %s", c.options, got, err, c.want)
		}
	}
	_, err := Compare(Pair{before, after}, Options{Rows: []string{"CAL", "XYZ"}})
	if err == nil || err.Error() != `before: "XYZ": there is no such row` {
		t.Errorf("%v, want that there is no XYZ", err)
	}
}

// TestExplainedRows: rounds are made of function calls, which x86 and arm64 name in several ways;
// the calls of a single CPU are none.
func TestExplainedRows(t *testing.T) {
	for row, want := range map[string]bool{
		callsRow: true, "IPI1 Function call interrupts": true, "CAL": true, "IPI1": true,
		"IPI1 function call interrupts":        true,
		"IPI3 Single function call interrupts": false, timer: false, moved: false, "LOC": false, "IPI0": false,
		"IPI2 CPU stop interrupts": false,
	} {
		name, description, _ := strings.Cut(row, " ")
		d := RowDelta{Name: name, Description: description}
		if got := (Options{}).explains(d, 2); got != want {
			t.Errorf("%q among others: %v, want %v", row, got, want)
		}
		if !(Options{}).explains(d, 1) {
			t.Errorf("%q alone is not explained", row)
		}
	}
}

// TestTwoCPUs: with two CPUs any two counts fit, so that nothing follows unless it is asked for
// what is exact; no interrupts are no rounds all the same.
func TestTwoCPUs(t *testing.T) {
	two := func(a, b int64) Snapshot {
		return Snapshot{Name: "s", CPUs: []int{0, 1}, Rows: []Row{{Name: "CAL", Counts: []int64{a, b}, Line: 2}}}
	}
	for _, c := range []struct {
		a, b  int64
		exact bool
		want  string
	}{
		{3, 4, false, "CAL: nothing follows: with two CPUs any two counts fit"},
		{0, 0, false, "CAL: no rounds"},
		{3, 4, true, "CAL: 7 rounds, sent by CPU 0 (4), CPU 1 (3)"},
	} {
		rows, err := Compare(Pair{two(1, 1), two(1+c.a, 1+c.b)}, Options{Exact: c.exact})
		if err != nil || len(rows) != 1 || rows[0].Sentence() != c.want || !rows[0].Consistent {
			t.Errorf("%+v: %+v, %v", c, rows, err)
		}
	}
}

// TestPatchesOfRows: with a buffer's slots the rounds that are known become patches; where more
// of them are other rounds than there are, the counts do not fit.
func TestPatchesOfRows(t *testing.T) {
	before := snapshot("before", map[string][]int64{callsRow: {0, 0, 0}})
	after := snapshot("after", map[string][]int64{callsRow: {0, 8, 8}})
	for _, c := range []struct {
		options  Options
		patches  *Interval // without the reason
		reason   string
		fits, ok bool
	}{
		{Options{}, nil, "", true, true},
		{Options{Slots: 256, PerBatch: 3, Other: Range{2, 2}}, &Interval{Min: 257, Max: 512, Batches: Range{2, 2}, Exact: true}, "", true,
			true},
		{Options{Slots: 256, PerBatch: 3}, &Interval{Min: 257, Max: 512, Batches: Range{2, 2}, Rest: 2},
			"no whole number of batches: at least 2 more rounds must come from elsewhere", true, true},
		{Options{Slots: 256, PerBatch: 3, Other: Range{8, 8}}, &Interval{Exact: true}, "", true, true},
		{Options{Slots: 256, PerBatch: 3, Other: Range{9, 9}}, &Interval{Rest: 8},
			"there are fewer rounds than the 9 that are known not to patch", false, true},
		{Options{Slots: -1, PerBatch: 3}, nil, "", true, false},
	} {
		rows, err := Compare(Pair{before, after}, c.options)
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.options, err)
		}
		if err != nil {
			continue
		}
		r := rows[0]
		if r.Patches != nil {
			c.patches.Reason = c.reason
		}
		if diff := cmp.Diff(c.patches, r.Patches); diff != "" || r.Reason != c.reason || r.Consistent != c.fits {
			t.Errorf("%+v: %q, consistent %v\n%s", c.options, r.Reason, r.Consistent, diff)
		}
	}
}

// TestBackground: what grew in as long a time before is taken off, CPU by CPU; a count that went
// backwards stays as it is, and none is turned below 0.
func TestBackground(t *testing.T) {
	idle := snapshot("idle", map[string][]int64{callsRow: {10, 10, 10}, timer: {1, 1, 1}})
	before := snapshot("before", map[string][]int64{callsRow: {11, 10, 13}, timer: {1, 1, 1}})
	after := snapshot("after", map[string][]int64{callsRow: {13, 15, 14}, timer: {1, 1, 1}})
	rows, err := Compare(Pair{before, after}, Options{Background: &idle})
	if err != nil || len(rows) != 1 || !slices.Equal(rows[0].Delta, []int64{1, 5, 0}) {
		t.Errorf("%+v, %v: want 2-1, 5-0 and 1-3, not below 0", rows, err)
	}
	other := idle
	other.CPUs = []int{0, 2, 6}
	if _, err := Compare(Pair{before, after}, Options{Background: &other}); err == nil {
		t.Error("a background of other CPUs was taken off")
	}
	deltas := []RowDelta{{Name: "A", Delta: []int64{-3, 4}}, {Name: "B", Delta: []int64{5, 5}}, {Name: "C"}, {Name: "D",
		Delta: []int64{7}}}
	want := [][]int64{{-3, 2}, {5, 5}, nil, {7}}
	for i, d := range Subtract(deltas, []RowDelta{{Name: "D", Delta: []int64{1, 1}}, {Name: "C", Delta: []int64{1}},
		{Name: "A", Delta: []int64{1, 2}}}) {
		if !slices.Equal(d.Delta, want[i]) {
			t.Errorf("%s: %v, want %v", d.Name, d.Delta, want[i])
		}
	}
	if !slices.Equal(deltas[0].Delta, []int64{-3, 4}) {
		t.Error("the deltas of the caller were written")
	}
	backwards := Subtract([]RowDelta{{Name: "A", Delta: []int64{5}}}, []RowDelta{{Name: "A", Delta: []int64{-2}}})
	if !slices.Equal(backwards[0].Delta, []int64{5}) {
		t.Errorf("a background that went backwards adds up: %v", backwards[0].Delta)
	}
}

// TestMismatchNamesTheCPU: which CPU only one reading has, and which reading that is.
func TestMismatchNamesTheCPU(t *testing.T) {
	of := func(name string, cpus ...int) Snapshot { return Snapshot{Name: name, CPUs: cpus} }
	for want, pair := range map[string]Pair{
		`b: "CPU7": this CPU is not in a: both must be of the same CPUs`: {of("a", 1, 2), of("b", 1, 2, 7)},
		`a: "CPU2": this CPU is not in b: both must be of the same CPUs`: {of("a", 1, 2), of("b", 1)},
		`b: the CPUs stand in another order than in a`:                   {of("a", 1, 2), of("b", 2, 1)},
	} {
		if _, err := Diff(pair.Before, pair.After); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	before := snapshot("a", map[string][]int64{"CAL": {1, 2, 3}})
	after := snapshot("b", map[string][]int64{"CAL": {1}})
	if _, err := Diff(before, after); err == nil || err.Error() != `b:2: "CAL": the row has 1 count, before it has 3` {
		t.Error(err)
	}
	after = snapshot("b", map[string][]int64{callsRow: {1, 2, 3}})
	if d, err := Diff(before, after); err != nil || d[0].Description != "Function call interrupts" {
		t.Errorf("%+v, %v: want the description of the one that has it", d, err)
	}
}
