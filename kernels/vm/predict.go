// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
)

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

// modelled is what lines send, in every row that a kernel's rules model.
func modelled(k *ledger.Kernel, lines []ledger.Line) map[string]Prediction {
	rows := map[string]Prediction{}
	for _, t := range k.Totals(len(lines), func(i int) *ledger.Entry { return &lines[i].Entry }) {
		if t.Row.Modelled {
			rows[t.Row.Name] = Prediction{t.Rounds, t.Within}
		}
	}
	return rows
}
