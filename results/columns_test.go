// SPDX-License-Identifier: Apache-2.0

package results_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/results"
)

// update is a row with a part of its own.
type update struct {
	arch  string
	costs costs
	timed bool
}

type costs struct{ rounds, took int }

func TestColumns(t *testing.T) {
	own := results.Columns[update]{{Column: results.Column{Name: "arch", Doc: "instruction set"},
		Cell: func(u update) any { return results.OrEmpty(u.arch) }}}
	cost := results.Columns[costs]{
		{Column: results.Column{Name: "rounds", Kind: results.Integer, Doc: "requests to synchronise"}, Cell: func(c costs) any { return c.rounds }},
		{Column: results.Column{Name: "update_ns", Kind: results.Integer, Doc: "how long it took", Detail: true},
			Cell: func(c costs) any { return c.took }},
	}
	all := append(own, results.Of(cost[:1], func(u update) costs { return u.costs })...)
	all = append(all, results.Of(cost[1:],
		func(u update) costs { return u.costs }).When(func(u update) bool { return u.timed })...)

	table, err := all.Fill("updates", []update{{"x86_64", costs{3, 17}, true}, {"", costs{504, 0}, false}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]results.Value{
		{results.String("x86_64"), results.Int(3), results.Int(17)},
		{results.Empty, results.Int(504), results.Empty},
	}
	if diff := cmp.Diff(want, table.Rows, cmp.Comparer(func(a, b results.Value) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if c := table.Columns[2]; !c.Detail || c.Doc != "how long it took" || c.Unit() != "ns" {
		t.Errorf("%+v in %q", c, c.Unit())
	}
	if table.Name != "updates" {
		t.Error(table.Name)
	}
}

func TestUnit(t *testing.T) {
	for name, want := range map[string]string{"rounds": "", "calls_per_s": "1/s", "elapsed_ns": "ns", "buffer_bytes": "B",
		"ipis_per_cpu": ""} {
		if got := (results.Column{Name: name}).Unit(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestColumnsRefuse: a cell that is none is the program's mistake, and the error names
// its column.
func TestColumnsRefuse(t *testing.T) {
	cs := results.Columns[time.Duration]{{Column: results.Column{Name: "took_ns", Doc: "wrong"}, Cell: func(d time.Duration) any { return d }}}
	_, err := cs.Fill("wrong", []time.Duration{1})
	if !errors.Is(err, results.ErrRow) || !strings.Contains(err.Error(), "took_ns") {
		t.Errorf("%v", err)
	}
}
