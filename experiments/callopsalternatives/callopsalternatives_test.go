// SPDX-License-Identifier: Apache-2.0

package callopsalternatives

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLoads holds the loads of the first two users against the paths as they are drawn
// in the mail: what is at the site leads to so many objects.
func TestLoads(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time", "--irrelevant", "0,37", "--functions", "10")
	want := map[string]string{
		"ops-at-site callback": "2", "ops-at-site direct": "2",
		"record-at-site callback": "3", "record-at-site direct": "3",
		"trampoline-per-ops callback": "1", "trampoline-per-ops direct": "1",
		"trampoline-and-ops-at-site callback": "2", "trampoline-and-ops-at-site direct": "1",
		"lookup-by-address callback": "2", "lookup-by-address direct": "5", // and hash, bucket, entry
	}
	seen := map[string]bool{}
	for i := range r.Table.Rows {
		key := r.Cell(t, i, "design") + " " + r.Cell(t, i, "users")
		if w := want[key]; w != "" {
			seen[key] = true
			if got := r.Cell(t, i, "loads"); got != w {
				t.Errorf("%s: %s loads, want %s", key, got, w)
			}
		}
		walked, _ := strconv.Atoi(r.Cell(t, i, "walked"))
		irrelevant, _ := strconv.Atoi(r.Cell(t, i, "irrelevant"))
		if r.Cell(t, i, "users") == "both" && walked != irrelevant+2 {
			t.Errorf("%s: %d entries walked beside %d", key, walked, irrelevant)
		}
		if r.Cell(t, i, "call_ns") != "" {
			t.Error("a time without having asked for one")
		}
		allocations := map[string]string{"lookup-by-address": "13", "trampoline-per-ops": "1", "global-pair": "", "list": ""}
		if w, ok := allocations[r.Cell(t, i, "design")]; r.Cell(t, i, "allocations") != w &&
			(ok || r.Cell(t, i, "allocations") != "0") {
			t.Errorf("%s: %s allocations, want %s", key, r.Cell(t, i, "allocations"), w)
		}
		verdict := map[string]string{"ops-at-site": "safe", "lookup-by-address": "safe", "trampoline-per-ops": "safe",
			"list":        "safe",
			"global-pair": "unsafe", "record-at-site": "unsafe", "trampoline-and-ops-at-site": "unsafe"}[r.Cell(t, i, "design")]
		if r.Cell(t, i, "verdict") != verdict {
			t.Errorf("%s: %s, want %q", key, r.Cell(t, i, "verdict"), verdict)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("only %v were there", seen)
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time")
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

func TestTimes(t *testing.T) {
	r := trial.Must(t, Experiment, "--repeats", "6", "--irrelevant", "200")
	medians := map[string]float64{}
	for i := range r.Table.Rows {
		var v [3]float64
		for k, column := range []string{"call_low_ns", "call_ns", "call_high_ns"} {
			v[k], _ = strconv.ParseFloat(r.Cell(t, i, column), 64)
		}
		if v[0] <= 0 || v[0] > v[1] || v[1] > v[2] {
			t.Errorf("%v", v)
		}
		medians[r.Cell(t, i, "design")+" "+r.Cell(t, i, "users")] = v[0]
	}
	// 200 entries of a list against none.
	if medians["list callback"] <= medians["ops-at-site callback"] {
		t.Errorf("%v", medians)
	}
	if !strings.Contains(string(r.Document(t, "report.md")), "Times on this machine") {
		t.Error("a report with times does not say whose they are")
	}
}

func TestWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--repeats=5", "want 6 or more"},
		{"--functions=-1", "want whole numbers from 0"},
		{"--irrelevant=x", "want whole numbers from 0"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := trial.RunWith(ctx, t, Experiment); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("cancelled: %v", r.Err)
	}
	trial.CutShort(t, Experiment)
}
