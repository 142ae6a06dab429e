// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/interrupts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRepeats: every published count comes out again, on every CPU. Who sent what
// follows from the conservation law: 840 = 7 x 120, 805 = 7 x 115, 4599 = 7 x 657,
// 4627 = 7 x 661, and 661 - 30 = 631.
func TestRepeats(t *testing.T) {
	r := trial.Must(t, Experiment)
	want := []struct {
		name   string
		sender int
		rounds string
	}{{"ftrace-own-breakpoints enable", 4, "120"}, {"ftrace-own-breakpoints disable", 4,
		"115"}, {"text-poke-batched enable", 2, "657"}, {"text-poke-batched disable", 2, "631"}}
	if len(r.Table.Rows) != 8*len(want) {
		t.Fatalf("%d rows", len(r.Table.Rows))
	}
	for i := range r.Table.Rows {
		w := want[i/8]
		sent := "0"
		switch {
		case i%8 == w.sender:
			sent = w.rounds
		case i == 24: // CPU 0 of the last one
			sent = "30"
		}
		if name := r.Cell(t, i, "patching") + " " + r.Cell(t, i, "action"); name != w.name ||
			r.Cell(t, i, "sent_rounds") != sent {
			t.Errorf("%s: CPU %d sent %s rounds, want %s", name, i%8, r.Cell(t, i, "sent_rounds"), sent)
		}
		if r.Cell(t, i, "error") != "0" || r.Cell(t, i, "ipis") != r.Cell(t, i, "delta_published") {
			t.Errorf("%s: CPU %d takes %s, published are %s", w.name, i%8, r.Cell(t, i, "ipis"), r.Cell(t, i, "delta_published"))
		}
	}
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

const header = "patching,action,cpu,before,after,delta,source\n"

// TestOthers: somebody else's counts, of three senders; and what cannot be.
func TestOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts.csv")
	put := func(rows string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(header+rows), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// 11 rounds on 4 CPUs: 5, 4, 0 and 2 sent.
	put(
		"text-poke-batched,enable,0,0,6,6,me\ntext-poke-batched,enable,1,0,7,7,me\ntext-poke-batched,enable,2,0,11,11,me\ntext-poke-batched,enable,3,0,9,9,me\n",
	)
	r := trial.Must(t, Experiment, "--published", file)
	if r.Headline != "The uneven row is one patcher that moved: 11 rounds, 5 from CPU 0, 4 from CPU 1, 2 from CPU 3" {
		t.Errorf("%q", r.Headline)
	}
	for rows, want := range map[string]string{
		"text-poke-batched,enable,1,0,6,6,me\n":                                                                           "cpu 1 is the last of 1: CPUs must be numbered from 0",
		"text-poke-batched,enable,0,0,0,0,me\n":                                                                           "fewer rounds in it than one batch takes",
		"text-poke-batched,enable,0,0,1,1,me\n":                                                                           "no rounds explain these interrupts",
		"text-poke-batched,enable,0,0,1,1,me\ntext-poke-batched,enable,1,0,1,1,me\n":                                      "fewer rounds in it than one batch takes",
		"text-poke-batched,enable,0,0,9,9,me\ntext-poke-batched,enable,1,0,9,9,me\ntext-poke-batched,enable,2,0,9,9,me\n": "no rounds explain these interrupts",
		"text-poke-batched,enable,0,0,0,0,me\ntext-poke-batched,enable,1,0,1000000,1000000,me\n":                          "1000000 rounds are more than are repeated here",
		"text-poke-batched,enable,0,0,x,1,me\n":                                                                           `after "x": want a whole number`,
		strings.Repeat("text-poke-batched,enable,0,0,1,1,me\n",
			2): "cpu 0 stands behind cpu 0: CPUs must ascend",
	} {
		put(rows)
		if r := trial.Run(t, Experiment, "--published", file); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%q: %v, want %s", rows, r.Err, want)
		}
	}
}

// TestDiffer: a CPU that takes another number is the answer no.
func TestDiffer(t *testing.T) {
	no := func(delta int64, violations uint64) error {
		m := &measurement{Reading: &published.Reading{Patching: "p", Action: "enable",
			Counts: []published.InterruptCount{{Delta: delta}}}, taken: []int64{1}, violations: violations,
			Why: interrupts.Explanation{Sent: []int64{1}}}
		s := spec.Study(Config{}, experiments.Lab{})
		if err := s.Add(row{m, 0}); err != nil {
			t.Fatal(err)
		}
		a, err := spec.Answer(s, s)
		if err != nil {
			t.Fatal(err)
		}
		return a.No
	}
	if err := no(2, 0); err == nil || err.Error() != "p, enable: CPU 0 takes 1 interrupts, published are 2" {
		t.Errorf("%v", err)
	}
	if no(1, 3) == nil || no(1, 0) != nil {
		t.Error("violations are nothing, or no difference is one")
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) {
	trial.CutShort(t, Experiment)
}
