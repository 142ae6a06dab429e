// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/vm"
)

// compareOwn holds a measurement of one's own, as kernel measure writes it, against what is
// predicted of the kernel's image. What cannot be predicted has no model.
func compareOwn(file, kernel string) (*Answer, error) {
	f, err := inputs.Open(file)
	if err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	defer f.Close()
	m, err := vm.ReadCounts(file, f)
	if err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	k, err := ledger.Open(kernel)
	if err != nil {
		return nil, err
	}
	if k.Arch != m.Arch {
		return nil, fmt.Errorf("kernel %s is of %s, and %s of %s", kernel, k.Arch, file, m.Arch)
	}
	var actions []string
	for _, r := range m.Readings {
		if !slices.Contains(actions, r.Action) {
			actions = append(actions, r.Action)
		}
	}
	predicted, _, err := vm.Predict(kernel, actions, m.CPUs)
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	for _, c := range m.Counts() {
		load, scenario := ledger.Function, c.Action+"_"+c.Direction
		if c.Direction == vm.Control {
			load, scenario = ledger.Idle, "idle"
		}
		row := Row{Batches: noBatches, Measured: ledger.Measured{Kernel: k, CPUs: len(m.CPUs), Load: load,
			Enable: c.Direction == vm.Enable, Scenario: scenario, Repetition: c.Repetition, CPU: c.CPU,
			Patcher: c.CPU == 0, Row: c.Row, Description: c.About, Delta: c.Interrupts}}
		known, ok := k.Row(c.Row)
		model, modelled := predicted[vm.Switched{Action: c.Action, Direction: c.Direction}][c.Row]
		if row.Modelled = ok && known.Modelled && (modelled || load == ledger.Idle); modelled {
			row.Model = model.Rounds
			if row.Patcher && !known.SenderToo {
				row.Model = 0
			}
		}
		a.Rows = append(a.Rows, row)
	}
	a.explain()
	return a, nil
}
