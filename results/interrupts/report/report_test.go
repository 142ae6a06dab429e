// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
)

func testdata(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t *testing.T, text string) interrupts.Snapshot {
	t.Helper()
	s, err := interrupts.Parse("test", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mailPairs(t *testing.T) []interrupts.Pair {
	t.Helper()
	pairs, err := interrupts.ParseDiff("mail", strings.NewReader(testdata(t, "mail-2019.txt")))
	if err != nil {
		t.Fatal(err)
	}
	return pairs
}

func filePair(t *testing.T) []interrupts.Pair {
	t.Helper()
	text := testdata(t, "x86-8cpus-1offline.txt")
	after := strings.NewReplacer("8901234", "8901300", "62742", "63399", "ERR:          0", "ERR:          2", "1024:",
		"1025:").Replace(text)
	return []interrupts.Pair{{Before: parse(t, text), After: parse(t, after)}}
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		pairs      []interrupts.Pair
		options    interrupts.Options
		consistent bool
	}{
		"report-mail":     {mailPairs(t), interrupts.Options{Slots: 256, PerBatch: 3}, true},
		"report-one":      {mailPairs(t)[2:3], interrupts.Options{Slots: 256, PerBatch: 3, Other: interrupts.Range{Lo: 40, Hi: 52}}, true},
		"report-file":     {filePair(t), interrupts.Options{Slots: 256, PerBatch: 3}, false},
		"report-file-loc": {filePair(t), interrupts.Options{Rows: []string{"LOC"}}, false},
		"report-file-tlb": {filePair(t), interrupts.Options{Rows: []string{"TLB"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReport(c.pairs, c.options, false)
			if err != nil {
				t.Fatal(err)
			}
			if r.Consistent != c.consistent {
				t.Errorf("consistent %v, want %v", r.Consistent, c.consistent)
			}
			var b bytes.Buffer
			for _, f := range []results.Format{results.FormatTable, results.FormatCSV} {
				if err := r.Write(&b, f); err != nil {
					t.Fatal(err)
				}
				b.WriteString("\n")
			}
			golden.Check(t, "testdata/"+name+".golden", b.Bytes())
		})
	}
}

func TestReportAllKeepsUnchangedRows(t *testing.T) {
	r, err := NewReport(filePair(t), interrupts.Options{All: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Summary.Rows) != 12 {
		t.Errorf("%d rows, want 11 and the one that is only there afterwards", len(r.Summary.Rows))
	}
}

// A single row is what its owner asks about, whatever its name.
func TestReportExplainsTheOnlyRow(t *testing.T) {
	only := []interrupts.Pair{{Before: parse(t, "FW_FENCE_I_RECVD: 0 0 0 fences\n"),
		After: parse(t, "FW_FENCE_I_RECVD: 0 7 7 fences\n")}}
	r, err := NewReport(only, interrupts.Options{}, false)
	if err != nil || !r.Consistent || r.Summary.Rows[0][2] != results.Int(7) {
		t.Errorf("%v, %v", r, err)
	}
}

// TestReportContradicted: fewer rounds than are known to be others do not add up.
func TestReportContradicted(t *testing.T) {
	for lo, want := range map[int64]bool{657: true, 658: false} { // the third diff has 657 rounds
		r, err := NewReport(mailPairs(t)[2:3], interrupts.Options{Slots: 170, PerBatch: 3, Other: interrupts.Range{Lo: lo, Hi: lo}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if r.Consistent != want {
			t.Errorf("%d other rounds: consistent %v, want %v", lo, r.Consistent, want)
		}
	}
}

func TestReportErrors(t *testing.T) {
	if _, err := NewReport(filePair(t), interrupts.Options{Rows: []string{"CAL", "XYZ"}}, false); err == nil ||
		!strings.Contains(err.Error(), `"XYZ"`) {
		t.Errorf("a row that is not there: %v", err)
	}
	if _, err := NewReport(mailPairs(t), interrupts.Options{Slots: -1, PerBatch: 3}, false); err == nil {
		t.Error("took a buffer of -1 slots")
	}
	p := mailPairs(t)[0]
	p.After.CPUs = p.After.CPUs[1:]
	if _, err := NewReport([]interrupts.Pair{p}, interrupts.Options{}, false); err == nil {
		t.Error("compared different CPUs")
	}
	r, err := NewReport(mailPairs(t), interrupts.Options{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(&bytes.Buffer{}, "xml"); err == nil {
		t.Error("wrote the format xml")
	}
}

// TestBackground: what an idle reading grew by is taken off, and what remains is explained exactly.
func TestBackground(t *testing.T) {
	text := func(counts string) interrupts.Snapshot { return parse(t, "CAL: "+counts+" Function call interrupts\n") }
	idle, before, after := text("1 2 3 4"), text("1 3 3 9"), text("658 661 3 671")
	o := interrupts.Options{Background: &idle}
	r, err := NewReport([]interrupts.Pair{{Before: before, After: after}}, o, false)
	if err != nil || !r.Consistent {
		t.Fatalf("%+v, %v", r, err)
	}
	var b strings.Builder
	if err := r.Write(&b, "table"); err != nil {
		t.Fatal(err)
	}
	if want := "CAL: 657 rounds, sent by CPU 2"; !strings.HasPrefix(b.String(), want+"\n") {
		t.Errorf("%q, want %q", b.String(), want)
	}
	o.Background = nil
	if r, err = NewReport([]interrupts.Pair{{Before: before, After: after}}, o, false); err != nil || r.Consistent {
		t.Errorf("%+v, %v", r, err)
	}
	other := parse(t, "CAL: 1 2 3 Function call interrupts\n")
	o.Background = &other
	if _, err = NewReport([]interrupts.Pair{{Before: before, After: after}}, o, false); err == nil {
		t.Error("an idle reading of three CPUs is taken for one of four")
	}
}

// full takes so many bytes, and no more.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("full")
	}
	return len(b), nil
}

// TestFull: wherever the room ends, the report says so.
func TestFull(t *testing.T) {
	for _, format := range []results.Format{results.FormatTable, results.FormatCSV} {
		r, err := NewReport(filePair(t), interrupts.Options{Slots: 256, PerBatch: 3}, true)
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		if err := r.Write(&whole, format); err != nil {
			t.Fatal(err)
		}
		for n := range whole.Len() {
			if r.Write(&full{n}, format) == nil {
				t.Fatalf("%s: no error with room for %d of %d bytes", format, n, whole.Len())
			}
		}
	}
}

// TestColumns: scripts find the columns in this order; people's two tables begin with the pair and the row.
func TestColumns(t *testing.T) {
	r, err := NewReport(mailPairs(t), interrupts.Options{Slots: 256, PerBatch: 3}, true)
	if err != nil {
		t.Fatal(err)
	}
	const cpu, summary = " cpu before after delta sent_rounds", " rounds senders about sent_by left_over interrupts " +
		"consistent reason patches_min patches_max description"
	for want, table := range map[string]results.Table{
		"row" + cpu + summary + " pair": r.All, "pair row" + cpu: r.CPUs, "pair row" + summary: r.Summary,
	} {
		var names []string
		for _, c := range table.Columns {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if !slices.EqualFunc(Columns().Columns, r.All.Columns, func(a, b results.Column) bool { return a.Name == b.Name }) {
		t.Error("the empty table has other columns than that of a report")
	}
	var with, without bytes.Buffer
	if err := r.Write(&with, results.FormatTable); err != nil {
		t.Fatal(err)
	}
	r.perCPU = false
	if err := r.Write(&without, results.FormatTable); err != nil {
		t.Fatal(err)
	}
	cut, is := strings.CutPrefix(with.String(), without.String())
	if !is || !strings.HasPrefix(cut, "\nrow: CAL\n\npair") {
		t.Errorf("each CPU's counts do not stand below, after one empty line: %.80q", cut)
	}
}

// TestNearest: rounds are named where they do not explain a row, and nowhere else.
func TestNearest(t *testing.T) {
	var near interrupts.Comparison
	stray := []interrupts.Pair{{Before: parse(t, "CAL: 5 5 5 5 Function call interrupts\n"),
		After: parse(t, "CAL: 662 665 5 664 Function call interrupts\n")}}
	for _, pairs := range [][]interrupts.Pair{mailPairs(t), filePair(t), stray} {
		for _, p := range pairs {
			all, err := interrupts.Compare(p, interrupts.Options{Slots: 256, PerBatch: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				if got := (row{Comparison: c}).Nearest(); got != (c.Near != nil && !c.Known) {
					t.Errorf("%s: nearest %v", c.Name, got)
				}
				if c.Near != nil && !c.Known {
					near = c
				}
			}
		}
	}
	if near.Near == nil {
		t.Error("no row has rounds that do not explain it")
	}
}
