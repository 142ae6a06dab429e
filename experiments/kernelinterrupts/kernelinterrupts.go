// SPDX-License-Identifier: Apache-2.0

// Package kernelinterrupts asks whether the ledger of a tracer's interrupts, counted
// cause by cause, agrees with real kernels. It compares ledgers with measurements, row
// by row, and hides no difference.
package kernelinterrupts

import (
	"context"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/results"
)

// Config chooses what is compared. The zero value stands for the measurements that come with
// the program, and the kernels that they are of.
type Config struct {
	// Measured is a file of one's own: what textpoke kernel measure writes with --out, or with
	// --format csv.
	Measured string
	// Kernel is what Measured was measured on: an image, or what else ledger.Open takes. The two go
	// together.
	Kernel string
}

func check(c *Config) error {
	if (c.Measured == "") != (c.Kernel == "") {
		return errors.New("measured and kernel go together: the counts, and the image that they were counted on")
	}
	return nil
}

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *Row]{
	Form: experiments.Text("kernelinterrupts/kernel-interrupts.experiment"), Measure: measure, Check: check,
}).Experiment()

func measure(ctx context.Context, s *experiments.Study[Config, *Row]) (any, error) {
	a, err := compare(ctx, s.Config)
	if err != nil {
		return nil, err
	}
	s.Asked = len(a.Rows)
	for i := range a.Rows {
		if err := s.Add(&a.Rows[i]); err != nil {
			return nil, err
		}
	}
	report := &report{Study: s}
	if s.Config.Measured == "" {
		if err := report.ledgers(); err != nil {
			return nil, err
		}
	} else if n := len(spelling.Where(a.Summaries, Summary.Unexplained)); n > 0 {
		// The measurements of the program have such a case, which is known.
		s.No = fmt.Errorf("%d cells do not agree, and nothing explains it", n)
	}
	return report, experiments.Beside(s, "summary", a.Summaries)
}

// compare compares what the Config chooses.
func compare(ctx context.Context, c Config) (*Answer, error) {
	if c.Measured != "" {
		return compareOwn(c.Measured, c.Kernel)
	}
	measured, err := ledger.Measurements()
	if err != nil {
		return nil, err
	}
	return Compare(ctx, measured)
}

// compareOwn holds a measurement of one's own, as kernel measure writes it, against what is
// predicted of the kernel's image. Rows that cannot be predicted have no model.
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
	actions := spelling.Distinct(m.Readings, func(r vm.Reading) string { return r.Action })
	predicted, _, err := vm.Predict(vm.Config{Image: kernel, Actions: actions, CPUs: m.CPUs})
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

// Batched is the number of batches; empty where there are none.
func (s Summary) Batched() any { return results.If(s.Batches != noBatches, s.Batches) }
func (r *Row) Batched() any    { return results.If(r.Batches != noBatches, r.Batches) }
