// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/kernels/attachcost"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// comparison is one measured number of interrupts beside the model's.
type comparison struct {
	kernel, Way, Direction string
	Functions              int64
	Model, Measured        int64
	reading                bool // a single one; otherwise what the kernel's formula says
	background             bool // the formula leaves wakeups of RCU and worker threads out
	source                 string
}

func (c *comparison) difference() int64 { return c.Measured - c.Model }

// at are the numbers of functions at which formulas are looked at: around the
// borders of batches, and many.
var at = []int64{1, 2, 32, 255, 256, 257, 1000, 20000}

// compare holds the rounds against all measurements.
func compare(all []*attachcost.Kernel) (out []comparison, err error) {
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
				background: f.Background,
				Measured:   f.PerFunction*n + f.PerBatch*((n+255)/256) + f.Fixed, source: f.Source})
		}
	}
	for _, r := range readings {
		out = append(out, comparison{kernel: r.Kernel, Way: r.Way, Direction: r.Direction, Functions: r.Functions,
			reading:  true,
			Measured: r.Interrupts, source: r.Source})
	}
	for i := range out {
		c := &out[i]
		at := slices.IndexFunc(all, func(k *attachcost.Kernel) bool { return k.Name == c.kernel })
		if at < 0 {
			return nil, fmt.Errorf("interrupts of %s, whose parts are not known", c.kernel)
		}
		w, err := attachcost.ParseWay(c.Way)
		if err != nil {
			return nil, err
		}
		counts, err := counted(all[at], w, c.Direction, c.Functions, records)
		if err != nil {
			return nil, err
		}
		c.Model = counts.AllRounds()
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
