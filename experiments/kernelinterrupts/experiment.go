// SPDX-License-Identifier: Apache-2.0

// Package kernelinterrupts asks whether what a tracer sends, counted cause by
// cause, is what real kernels were seen to take. It holds the ledgers of package
// kernels against its measurements, row by row, and hides no difference.
package kernelinterrupts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
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
		return errors.New("measured and kernel go together: what was counted, and the image that it was counted on")
	}
	return nil
}

//go:embed kernel-interrupts.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *Row]{
	Form: declared, Cells: cells, Measure: measure, Check: check,
}).Experiment()

func measure(ctx context.Context, s *experiments.Study[Config, *Row]) (*experiments.Findings, error) {
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
	f := &experiments.Findings{}
	report := &report{Study: s}
	f.Report = report
	if s.Config.Measured == "" {
		if err := report.ledgers(); err != nil {
			return nil, err
		}
	} else if n := len(experiments.Where(a.Summaries, Summary.Unexplained)); n > 0 {
		// What came with the program has such a case, which is known.
		f.No = fmt.Errorf("%d cells do not agree, and nothing explains it", n)
	}
	return f, experiments.Beside(s, "summary", a.Summaries)
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
