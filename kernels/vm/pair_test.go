// SPDX-License-Identifier: Apache-2.0

package vm

import "testing"

// TestPairs: rows that both kernels have a prediction of, and what the forecast is held against.
func TestPairs(t *testing.T) {
	of := func(action, row string, took, predicted int, compared bool) Summary {
		return Summary{Action: action, Direction: Enable, Row: row, Receivers: 2, Quietest: float64(took), Least: took, Most: took,
			Predicted: exactly(predicted), Compared: compared}
	}
	before := []Summary{of("a", "CAL", 301, 301, true), of("a", "LOC", 5, 0, false), of("b", "CAL", 39, 39, true), of("c", "CAL", 1, 1, true), of("d", "CAL", 1, 0, false)}
	after := []Summary{of("b", "CAL", 21, 21, true), of("a", "CAL", 52, 53, true), of("a", "LOC", 5, 0, false), of("d", "CAL", 1, 1, true)}
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
	if all := Pairs(before, after, nil); all[0].Forecast != nil || len(all[0].Judged()) != 2 || len(pairs[0].Judged()) != 3 {
		t.Error("what is judged without a forecast, and with one")
	}
}

// TestSummaryOfReceivers: the least and the most of all readings, the quietest receiver by its median, and the one that switches
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
	want := Summary{Row: "CAL", Receivers: 2, Repetitions: 3, Quietest: 4, Isolated: 7, Least: 3, Most: 8, Patcher: 2, CPU: 1}
	if got := summaryOf(counts); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
