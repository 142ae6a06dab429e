// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
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

// Predict works out what a measurement will count, from its image or another form of a kernel that
// [ledger.Open] takes: the interrupts that each action sends a receiver, by the rows that the rules model. It leaves
// out actions that it cannot predict, and notes say why, a line each. What-ifs change the kernel's mechanisms, see
// [ledger.Kernel.WhatIf].
func Predict(c Config, whatIf ...string) (p Predictions, notes []string, err error) {
	k, err := ledger.Open(c.Image)
	if err == nil && k.Facts == nil {
		_, err = k.NewReplay(nil) // says what is missing
	}
	if err == nil {
		k, err = k.WhatIf(whatIf)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("predict: %w", err)
	}
	var state []string
	if slices.Contains(c.CPUs, cpus.Isolated) && k.Facts.Keys[ledger.UserTracking] > 0 {
		state = append(state, ledger.UserTracking+"=on")
	}
	for _, file := range c.Modules {
		state = append(state, "action="+moduleLoad+":"+file)
	}
	// Tracers keep executable memory once they were on.
	if len(c.Modules) == 0 && !slices.ContainsFunc(c.Actions, func(a string) bool { return !strings.HasPrefix(a, moduleLoad+":") }) {
		state = append(state, "modules=none")
	}
	p, notes = Predicted(k.In(state), c.Actions)
	return p, notes, nil
}

// Predicted is the same for a kernel that was opened, in its state.
func Predicted(k *ledger.Kernel, actions []string) (p Predictions, notes []string) {
	p = Predictions{}
	for _, action := range actions {
		r, err := k.NewReplay(k.Own)
		if err != nil {
			notes = append(notes, fmt.Sprintf("not predicted: %s: %v", action, err))
			continue
		}
		if strings.HasPrefix(action, uprobe+":") { // a site that was hit is a call, or stays a breakpoint
			p[Switched{asMeasured(action), Again}] = modelled(k, nil)
		}
		for i, direction := range []string{Enable, Disable} {
			lines, err := r.Switch(action, i == 0)
			if err != nil {
				notes = append(notes, fmt.Sprintf("not predicted: %s %s: %v", action, direction, err))
				break
			}
			p[Switched{asMeasured(action), direction}] = modelled(k, lines)
		}
	}
	return p, notes
}

// modelled is what lines send, in every row that a kernel's rules model and of firmware where something is sent.
func modelled(k *ledger.Kernel, lines []ledger.Line) map[string]Prediction {
	rows := map[string]Prediction{}
	for _, t := range k.Totals(len(lines), func(i int) *ledger.Entry { return &lines[i].Entry }) {
		if t.Row.Modelled || t.Rounds > 0 && ledger.Firmware(t.Row.Name) {
			rows[t.Row.Name] = Prediction{t.Rounds, t.Within}
		}
	}
	return rows
}
