// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// report is what the template is filled with.
type report struct {
	*experiments.Study[Config, *Row]
	Ledgers []reportEntry
}

// reportEntry is a line of a kernel's ledger.
type reportEntry struct {
	Kernel, Scenario, Direction, Part, Cause, Row string
	Pokes, Rounds                                 int
}

// quiet tells of which rows some receiver takes none while nothing is switched. Only there a row counts
// nothing else, and clean values can be held against the model exactly.
func (a *Answer) quiet() map[rowKey]bool {
	out := map[rowKey]bool{}
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if key := (rowKey{s.Kernel, s.CPUs, s.Row}); !s.Load.Switches() {
			before, ok := out[key]
			out[key] = (before || !ok) && s.Quietest == 0
		}
	}
	return out
}

// ledgers lists those of the kernels that were measured.
func (r *report) ledgers() error {
	measured := map[*ledger.Kernel]bool{}
	for _, row := range r.Rows {
		measured[row.Kernel] = true
	}
	for _, k := range ledger.Kernels() {
		if !measured[k] {
			continue
		}
		for _, s := range ledger.Scenarios() {
			for _, direction := range []string{"enable", "disable"} {
				entries, err := k.Ledger(s, direction == "enable", nil)
				if err != nil {
					return err
				}
				for _, e := range entries {
					r.Ledgers = append(r.Ledgers, reportEntry{k.Name(), string(s), direction, e.Part, e.Cause.String(), e.Row, e.Pokes,
						e.Rounds()})
				}
			}
		}
	}
	return nil
}
