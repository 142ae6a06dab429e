// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// Switched is one direction of one action.
type Switched struct{ Action, Direction string }

// Prediction is what a receiver should take in a row.
type Prediction struct {
	Rounds int
	Within ledger.Range // in which they lie, or were seen to
}

// Predictions are the predicted interrupts of receivers, by row. A row without a prediction is
// missing; a predicted 0 is there.
type Predictions map[Switched]map[string]Prediction

// Why a difference is there.
const (
	Background = "background"          // no more than while nothing is switched
	Bounds     = "within the range"    // of the prediction: how often pages are flushed and CPUs woken, no image tells
	Shared     = "shared an interrupt" // two calls that one interrupt carried: one fewer than predicted
	Unknown    = "not explained"
)

// Compare adds predictions to summaries, also of rows in which nothing was counted: where nothing is
// predicted, the first.
func (m *Measurement) Compare(p Predictions) []Summary {
	all := m.Summaries()
	var seen []Switched
	for _, r := range m.Readings {
		k := Switched{r.Action, r.Direction}
		if p[k] == nil || slices.Contains(seen, k) {
			continue
		}
		seen = append(seen, k)
		silent := !slices.ContainsFunc(slices.Collect(maps.Values(p[k])), func(n Prediction) bool { return n.Rounds > 0 })
		for at, row := range slices.Sorted(maps.Keys(p[k])) {
			n := p[k][row]
			i := slices.IndexFunc(all, func(s Summary) bool {
				return s.Action == k.Action && s.Direction == k.Direction && s.Row == row
			})
			switch {
			case i >= 0:
				all[i].Predicted, all[i].Compared = n, true
			case n.Rounds != 0, silent && at == 0: // nothing was counted; where nothing should be, one row says so
				all = append(all, Summary{Arch: m.Arch, Release: m.Release, Action: k.Action, Direction: k.Direction, Row: row,
					Receivers: len(m.CPUs) - 1, Isolated: -1, CPU: 1, Predicted: n, Compared: true})
			}
		}
	}
	return all
}

// Difference is what the quietest receiver takes beyond the prediction.
func (s *Summary) Difference() float64 { return s.Quietest - float64(s.Predicted.Rounds) }

// Why says why it differs; "" where it does not. Only what is Unknown speaks against the
// prediction. Background only adds: of some readings the least is the cleanest, on a busy machine too.
func (s *Summary) Why() string {
	p := s.Predicted
	switch d := s.Difference(); {
	case !s.Compared || d == 0:
		return ""
	case d > 0 && float64(s.Least-p.Rounds) <= s.Idle:
		return Background
	case s.Quietest >= float64(p.Within.Least) && s.Quietest <= float64(p.Within.Most):
		return Bounds
	case d < 0 && d >= -1 && s.Most >= p.Rounds:
		return Shared
	}
	return Unknown
}

// Verdict is how many summaries agree, how many differ for a reason that is known, and
// which do not: a line each.
func Verdict(all []Summary) (exact, explained int, wrong []string) {
	for i := range all {
		switch s := &all[i]; {
		case !s.Compared:
		case s.Why() == "":
			exact++
		case s.Why() != Unknown:
			explained++
		default:
			wrong = append(wrong, fmt.Sprintf("%s %s, row %s: predicted %d, the quietest receiver took %g", s.Action,
				s.Direction, s.Row, s.Predicted.Rounds, s.Quietest))
		}
	}
	return exact, explained, wrong
}
