// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// Predict works out from a kernel, an image or what else [ledger.Open] takes, what each
// action sends a receiver: by the rows that the rules model. What cannot be predicted is
// left out, and notes say why, a line each.
func Predict(kernel string, actions []string) (p Predictions, notes []string, err error) {
	k, err := ledger.Open(kernel)
	if err != nil {
		return nil, nil, fmt.Errorf("predict: %w", err)
	}
	p = Predictions{}
	for _, action := range actions {
		r, err := k.NewReplay()
		if err != nil {
			return nil, nil, fmt.Errorf("predict: %w", err)
		}
		for i, direction := range []string{Enable, Disable} {
			lines, err := r.Switch(action, i == 0, k.Own)
			if err != nil {
				notes = append(notes, fmt.Sprintf("not predicted: %s %s: %v", action, direction, err))
				break
			}
			rows := map[string]Prediction{}
			for _, row := range k.Rows() {
				if row.Modelled {
					rows[row.Name] = Prediction{}
				}
			}
			for _, l := range lines {
				p, modelled := rows[l.Row]
				if !modelled {
					continue
				}
				p.Rounds += l.Rounds()
				if l.Cause == cpus.PageAttributes {
					p.Flushes += l.Rounds()
				}
				rows[l.Row] = p
			}
			p[Switched{asMeasured(action), direction}] = rows
		}
	}
	return p, notes, nil
}
