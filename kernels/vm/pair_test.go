// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// TestPairs: rows that both kernels have a prediction of, and what the forecast is held against.
func TestPairs(t *testing.T) {
	of := func(action, row string, took, predicted int, compared bool) Summary {
		return Summary{Action: action, Direction: Enable, Row: row, Receivers: 2, Quietest: float64(took),
			Least: took, Most: took,
			Predicted: exactly(predicted), Compared: compared}
	}
	before := []Summary{of("a", "CAL", 301, 301, true), of("a", "LOC", 5, 0, false), of("b", "CAL", 39, 39, true),
		of("c", "CAL", 1, 1, true), of("d", "CAL", 1, 0, false)}
	after := []Summary{of("b", "CAL", 21, 21, true), of("a", "CAL", 52, 53, true), of("a", "LOC", 5, 0, false),
		of("d", "CAL", 1, 1, true)}
	forecast := Predictions{Switched{"a", Enable}: {"CAL": exactly(52)}, Switched{"b", Enable}: {"CAL": exactly(9)}}
	pairs := Pairs(before, after, forecast)
	if len(pairs) != 2 || pairs[0].Before.Action != "a" || pairs[1].Before.Action != "b" {
		t.Fatalf("%d pairs, want those of a and b in CAL", len(pairs))
	}
	if f := pairs[0].Forecast; f.Predicted.Rounds != 52 || f.Why() != "" || pairs[0].After.Predicted.Rounds != 53 {
		t.Errorf("a: forecast %+v", f)
	}
	if f := pairs[1].Forecast; f.Predicted.Rounds != 9 || f.Why() != Unknown {
		t.Errorf("b: forecast %+v, 12 more than it are explained by %q", f, f.Why())
	}
	if all := Pairs(before, after, nil); all[0].Forecast != nil || len(all[0].Judged()) != 2 ||
		len(pairs[0].Judged()) != 3 {
		t.Error("what is judged without a forecast, and with one")
	}
}

// TestSummaryOfReceivers: the least and the most of all readings, the quietest receiver by its median, and the
// one that switches
// apart.
func TestSummaryOfReceivers(t *testing.T) {
	var counts []Count
	for i, n := range []int{9, 5, 7, 1, 3, 8, 2, 4, 6} {
		role := "idle"
		if i%3 == 0 {
			role = patcher
		} else if i%3 == 2 {
			role = "isolated"
		}
		counts = append(counts, Count{CPU: i % 3, Role: role, Repetition: i / 3, Interrupts: n, Row: "CAL"})
	}
	want := Summary{Row: "CAL", Receivers: 2, Repetitions: 3, Quietest: 4, Isolated: 7, Least: 3, Most: 8,
		Patcher: 2, CPU: 1}
	if got := summaryOf(counts); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPredictsEachAction: an action is predicted as a replay of it alone has it, switched on and then
// off; what cannot be is told with its reason, and left out.
func TestPredictsEachAction(t *testing.T) {
	for _, name := range []string{"riscv64-6.12", "x86_64-6.12"} {
		const action, other, none = "function-tracer", "event-group:sched", "no-such-action"
		p, notes, err := Predict(Config{Image: name, CPUs: make([]cpus.Role, 2), Actions: []string{action, none, other}})
		if err != nil || len(notes) != 1 || !strings.HasPrefix(notes[0], "not predicted: "+none+" enable: ") ||
			len(p) != 4 {
			t.Errorf("%s: %d predictions, %q, %v", name, len(p), notes, err)
			continue
		}
		for _, a := range []string{action, other} {
			k, err := ledger.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := k.NewReplay(k.Own)
			if err != nil {
				t.Fatal(err)
			}
			for _, direction := range []string{Enable, Disable} {
				lines, err := r.Switch(a, direction == Enable)
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]int{}
				for _, total := range k.Totals(len(lines), func(i int) *ledger.Entry { return &lines[i].Entry }) {
					want[total.Row.Name] = total.Rounds
				}
				got := p[Switched{a, direction}]
				for row, n := range got {
					if n.Rounds != want[row] || n.Rounds < n.Within.Least || n.Rounds > n.Within.Most {
						t.Errorf("%s, %s %s: row %s has %+v, want %d", name, a, direction, row, n, want[row])
					}
				}
				if len(got) == 0 {
					t.Errorf("%s, %s %s: nothing is predicted", name, a, direction)
				}
			}
		}
		if p, notes, err := Predict(Config{Image: name, Actions: []string{action}}, "no such change"); p != nil ||
			notes != nil || err == nil ||
			!strings.HasPrefix(err.Error(), "predict: ") {
			t.Errorf("%s, changed by nothing: %v, %q, %v", name, p, notes, err)
		}
	}
}

// TestNothingIsPredictedWithoutFacts: each action is told, in its order, with the reason that a replay gives.
func TestNothingIsPredictedWithoutFacts(t *testing.T) {
	k, err := ledger.Named("x86_64-6.12")
	if err != nil {
		t.Fatal(err)
	}
	bare := *k
	bare.Facts = nil
	_, why := bare.NewReplay(nil)
	if why == nil {
		t.Fatal("a kernel without facts is replayed")
	}
	want := []string{"not predicted: kprobe: " + why.Error(), "not predicted: idle: " + why.Error()}
	if p, notes := Predicted(&bare, []string{"kprobe", "idle"}); len(p) != 0 || !slices.Equal(notes, want) {
		t.Errorf("%v, %q, want %q", p, notes, want)
	}
}
