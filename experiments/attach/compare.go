// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
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

func (c *comparison) difference() int { return c.Measured - c.Model }

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

// kind tells readings from formulas.
func (c *comparison) kind() string {
	if c.reading {
		return "reading"
	}
	return "formula"
}

// measuredColumns are those of measured.csv.
var measuredColumns = results.Columns[comparison]{
	{Name: "kernel", Doc: "instruction set and release", Cell: func(c comparison) any { return c.kernel }},
	{Name: "way", Doc: "how functions are attached to", Cell: func(c comparison) any { return c.Way }},
	{Name: "direction", Doc: "attach or detach", Cell: func(c comparison) any { return c.Direction }},
	{Name: "functions", Kind: results.Integer,
		Doc: "attached to", Cell: func(c comparison) any { return c.Functions }},
	{Name: "kind", Doc: "reading: a single one; formula: what was found for any number",
		Cell: func(c comparison) any { return c.kind() }},
	{Name: "model", Kind: results.Integer,
		Doc: "rounds counted here", Cell: func(c comparison) any { return c.Model }},
	{Name: "measured", Kind: results.Integer, Doc: "interrupts of the quietest receiver",
		Cell: func(c comparison) any { return c.Measured }},
	{Name: "difference", Kind: results.Integer,
		Doc: "measured beyond the model", Cell: func(c comparison) any { return c.difference() }},
	{Name: "background", Kind: results.Boolean, Doc: "whether a few wakeups come on top of the formula",
		Cell: func(c comparison) any { return c.background }},
	{Name: "source", Doc: "of the measurement", Cell: func(c comparison) any { return c.source }},
}
