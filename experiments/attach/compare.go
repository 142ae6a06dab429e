// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
)

// comparison is one measured number of interrupts beside the model's.
type comparison struct {
	kernel, Way, Direction string
	Functions              int
	Model, Measured        int
	reading                bool // a single one; otherwise what the kernel's formula says
	background             bool // the formula leaves wakeups of RCU and worker threads out
	source                 string
}

func (c *comparison) Difference() int { return c.Measured - c.Model }

// at are the numbers of functions at which formulas are looked at: around the
// borders of batches, and many.
var at = []int{1, 2, 32, 255, 256, 257, 1000, 20000}

// compare holds the rounds against all measurements.
func compare() (out []comparison, err error) {
	formulas, err := published.AttachFormulas.Read("")
	if err != nil {
		return nil, err
	}
	readings, err := published.AttachReadings.Read("")
	if err != nil {
		return nil, err
	}
	for _, f := range formulas {
		for _, n := range at {
			out = append(out, comparison{kernel: f.Kernel, Way: f.Way, Direction: f.Direction, Functions: n,
				background: f.Background, Measured: f.At(n), source: f.Source})
		}
	}
	for _, r := range readings {
		out = append(out, comparison{kernel: r.Kernel, Way: r.Way, Direction: r.Direction, Functions: int(r.Functions),
			reading: true, Measured: int(r.Interrupts), source: r.Source})
	}
	for i := range out {
		c := &out[i]
		k, err := ledger.Named(c.kernel)
		if err != nil {
			return nil, err
		}
		w, err := ledger.ParseWay(c.Way)
		if err != nil {
			return nil, err
		}
		t, err := counted(k, w, c.Direction, c.Functions, c.Functions)
		if err != nil {
			return nil, err
		}
		if c.Model = t.AllRounds(); c.background {
			c.Model -= t.Rounds[ledger.ForWakeups]
		}
	}
	return out, nil
}

// Kind tells readings from formulas.
func (c *comparison) Kind() string {
	if c.reading {
		return "reading"
	}
	return "formula"
}
