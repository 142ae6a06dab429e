// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/records"
)

// walk cuts a list of addresses by the kernel's rules, as tp_order_fail and
// text_poke_flush have them, one address after the other.
func walk(addrs []records.Addr, slots int) (full, order int) {
	queued := 0
	for i, at := range addrs {
		if queued > 0 && queued == slots {
			full, queued = full+1, 0
		} else if queued > 0 && addrs[i-1] > at {
			order, queued = order+1, 0
		}
		queued++
	}
	return full, order
}

// TestFlushCauseCounts holds every row against walking the addresses one by one, and
// against formulas: sorted, nothing but the size closes batches; descending,
// every record is a batch.
func TestFlushCauseCounts(t *testing.T) {
	sources := []string{"x86_64-6.12-modules", "gen:n=5000,groups=40,order=grouped,modules=0.2", "gen:n=3000,order=random"}
	args := []string{"--buffer", "7,128,170,256,dynamic"}
	for _, s := range sources {
		args = append(args, "--records", s)
	}
	r := trial.Must(t, FlushCause, args...)
	if want := len(sources) * 4 * 5; len(r.Table.Rows) != want {
		t.Fatalf("%d rows, want %d", len(r.Table.Rows), want)
	}
	tables := map[string]*records.Table{}
	for _, s := range sources {
		table, err := records.Open(t.Context(), s, records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tables[s] = table
	}
	for i := range r.Table.Rows {
		table := tables[r.Cell(t, i, "source")]
		n, name := table.Len(), fmt.Sprint(r.Table.Rows[i])
		slots, err := strconv.Atoi(r.Cell(t, i, "buffer"))
		if err != nil {
			slots = n
		}
		full, order, rounds := r.Count(t, i, "flush_full"), r.Count(t, i, "flush_order"), r.Count(t, i, "rounds")
		batches := (n + slots - 1) / slots
		switch r.Cell(t, i, "order") {
		case "table":
			if f, o := walk(table.Addrs(), slots); full != f || order != o {
				t.Errorf("%s: %d full, %d order; want %d, %d", name, full, order, f, o)
			}
		case "sorted":
			if full != batches-1 || order != 0 || r.Count(t, i, "rounds_saved") != 0 {
				t.Errorf("%s: want %d full, 0 order, 0 saved", name, batches-1)
			}
		case "descending":
			if full+order != n-1 || rounds != 3*n {
				t.Errorf("%s: want %d flushes for order, %d rounds", name, n-1, 3*n)
			}
		}
		if flushes := r.Count(t, i, "flushes"); flushes != full+order+1 || rounds != 3*flushes ||
			r.Count(t, i, "ipis") != 7*rounds {
			t.Errorf("%s: the causes do not add up", name)
		}
		if saved := r.Count(t, i, "rounds_saved"); saved != rounds-3*batches ||
			r.Count(t, i, "rounds_sorted") != 3*batches {
			t.Errorf("%s: %d rounds saved, want %d", name, saved, rounds-3*batches)
		}
	}
}

func TestFlushCauseReport(t *testing.T) {
	r := trial.Must(t, FlushCause)
	trial.Golden(t, "flush-cause.md", r.Document(t, "report.md"))
	r.Figure(t)
	// The mail of 2019 counts flushes of a full vector of 170 slots.
	if !strings.Contains(string(r.Document(t, "report.md")),
		"| batches closed because 170 slots were full, x86_64-6.12 | 250 | 251 |") {
		t.Error("the published number of flushes is not beside ours")
	}
	if svg := string(r.Document(t, "flush-cause.svg")); !strings.Contains(svg, ">66,498<") {
		t.Error("the picture lacks a bar's label")
	}
	sorted := trial.Must(t, FlushCause, "--records", "gen:n=100,order=sorted")
	if want := "As they stand, these tables cost no round more than sorted ones"; sorted.Headline != want {
		t.Errorf("%q", sorted.Headline)
	}
}

func TestFlushCauseWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--records=gen:n=-1", `gen:n=-1: n "-1": not a number from`},
		{"--buffer=0", "want a number of slots from 1 to 1073741824, or dynamic"},
		{"--buffer=dynamc", "did you mean dynamic"},
		{"--cpus=isolated=2", "at least one CPU must be busy"},
	} {
		if r := trial.Run(t, FlushCause, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v, want %s", tt[0], r.Err, tt[1])
		}
	}
}

// TestFlushCauseNothing: what was cut short before the first row says so.
func TestFlushCauseNothing(t *testing.T) {
	trial.CutShort(t, FlushCause)
}
