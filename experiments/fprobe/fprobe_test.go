// SPDX-License-Identifier: Apache-2.0

package fprobe

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCounts: all combinations, from the structures. Over the list a call reads the
// head, and of each ops itself, its hash, a bucket, and the entry of the one that
// traces the function; with a literal that and the ops. Then the fprobe. A hook from
// the pool takes the head and the node, and the node again; from the stack the frame
// twice. arm64 has 34 registers in pt_regs, 13 in ftrace_regs, and 9 on return.
func TestCounts(t *testing.T) {
	for _, others := range []float64{0, 3} {
		r := trial.Must(t, Experiment, "--no-time", "--others", strconv.Itoa(int(others)))
		if len(r.Table.Rows) != 32 {
			t.Fatalf("%d rows", len(r.Table.Rows))
		}
		for i := range r.Table.Rows {
			has := func(column string) bool { return r.Cell(t, i, column) == "true" }
			hooked := has("always_hook") || has("exit_handler")
			loads, walked, saved, atomics := 2.0+1, 0.0, 13.0, 0.0
			if has("list_function") {
				loads, walked = 5+3*others+1, 1+others
			}
			if has("all_registers") {
				saved = 34
			}
			if hooked {
				saved += 9
				loads += 2
				if has("pool") {
					loads, atomics = loads+1, 2
				}
			}
			if r.Number(t, i, "loads") != loads || r.Number(t, i, "walked") != walked ||
				r.Number(t, i, "registers_saved") != saved || r.Number(t, i, "atomics") != atomics {
				t.Errorf("%v\nwant %v loads, %v walked, %v saved, %v atomics", r.Table.Rows[i], loads, walked, saved, atomics)
			}
		}
	}
}

// TestHits: per cents as time, by hand.
func TestHits(t *testing.T) {
	hits, err := published.Hits.Read("")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.40056, 2.01205, 1.67380, 0.51745} {
		if math.Abs(extra(hits[i])-want) > 1e-5 {
			t.Errorf("%s: %v, want %v", hits[i].Mechanism, extra(hits[i]), want)
		}
	}
	r := &Config{Add: []string{"bpf-on-direct-calls", "bpf-on-fprobe-optimised"}, AddAs: asTime}
	s, err := r.addUp(hits)
	// 1 + 0.40056 + 0.51745 is 1.91801, and 1 - 1/1.91801 is 47.863 %.
	if err != nil || math.Abs(s.extra-0.91801) > 1e-5 || math.Abs(s.Percent()-47.863) > 1e-3 {
		t.Errorf("%+v, %v", s, err)
	}
	added := trial.Must(t, Experiment, "--no-time", "--add", "bpf-on-direct-calls,bpf-on-fprobe-optimised")
	if !strings.Contains(string(added.Document(t, "report.md")), "attached together: time x 1.918, a hit of 47.9 %.") {
		t.Error("the report has no sum")
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment, "--no-time")
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	trial.Golden(t, "hits.csv", r.Document(t, "hits.csv"))
	if len(r.Document(t, "fprobe-hits.svg")) == 0 {
		t.Error("no picture of the hits")
	}
	r.Figure(t)
}

// TestLive: all four costs take longer than none.
func TestLive(t *testing.T) {
	r := trial.Must(t, Experiment, "--repeats", "6", "--threads", "1")
	for i := range r.Table.Rows {
		if low, mid, high := r.Number(t, i, "live_low_ns"), r.Number(t, i, "live_ns"), r.Number(t, i,
			"live_high_ns"); low > mid || mid > high || low <= 0 {
			t.Errorf("row %d: %v %v %v", i, low, mid, high)
		}
		if r.Cell(t, i, "threads") != "1" {
			t.Errorf("row %d: %s threads", i, r.Cell(t, i, "threads"))
		}
	}
	// Rows go from all four costs down to none; the low ends are the least disturbed.
	if all, none := r.Number(t, 0, "live_low_ns"), r.Number(t, combinations-1, "live_low_ns"); all <= none {
		t.Errorf("all costs: %v ns, none: %v", all, none)
	}
	if report := string(r.Document(t, "report.md")); !strings.Contains(report,
		"- program on entry: every return is hooked") && !strings.Contains(report, "intervals of the first two overlap") {
		t.Errorf("the report does not say what matters:\n%s", report)
	}
	two := trial.Must(t, Experiment, "--repeats", "6", "--threads", "2,1024")
	for i := range two.Table.Rows {
		if n := two.Cell(t, i, "threads"); n != "1" && n != "2" {
			t.Errorf("%s threads", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := trial.RunWith(ctx, t, Experiment); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("cancelled: %v", r.Err)
	} else {
		trial.CutShort(t, Experiment)
	}
}

func TestWrong(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.csv")
	if err := os.WriteFile(own, []byte("mechanism,performance_hit_percent\nmine,50\nmine,60\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][]string{
		{"want 6 or more", "--repeats=5"},
		{"want whole numbers from 0 to 10000", "--others=-1"},
		{"want whole numbers from 1 to 1024", "--threads=0"},
		{`add "bpf-on-kprob": not one of`, "--add=bpf-on-kprob"},
		{"did you mean bpf-on-kprobe", "--add=bpf-on-kprob"},
		{"not one of", "--add-as=sum"},
		{"they do not add; add times", "--add-as=percent"},
		{"they do not add; 62.6 + 66.8 would be 129.4 %, and times make it 78.7 % (time x 4.686)", "--add-as=percent",
			"--add=bpf-on-fprobe-unoptimised,bpf-on-kprobe"},
		{`own.csv:3: "mine": line 2 is about the same`, "--published=" + own},
	} {
		if r := trial.Run(t, Experiment, tt[1:]...); r.Err == nil || !strings.Contains(r.Err.Error(), tt[0]) {
			t.Errorf("%v: %v", tt[1:], r.Err)
		}
	}
}
