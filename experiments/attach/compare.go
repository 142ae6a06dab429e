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
	kernel, way, direction string
	functions              int64
	model, measured        int64
	reading                bool // a single one; otherwise what the kernel's formula says
	background             bool // the formula leaves wakeups of RCU and worker threads out
	source                 string
}

func (c *comparison) difference() int64 { return c.measured - c.model }

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
			out = append(out, comparison{kernel: f.Kernel, way: f.Way, direction: f.Direction, functions: n, background: f.Background,
				measured: f.PerFunction*n + f.PerBatch*((n+255)/256) + f.Fixed, source: f.Source})
		}
	}
	for _, r := range readings {
		out = append(out, comparison{kernel: r.Kernel, way: r.Way, direction: r.Direction, functions: r.Functions, reading: true,
			measured: r.Interrupts, source: r.Source})
	}
	for i := range out {
		c := &out[i]
		at := slices.IndexFunc(all, func(k *attachcost.Kernel) bool { return k.Name == c.kernel })
		if at < 0 {
			return nil, fmt.Errorf("interrupts of %s, whose parts are not known", c.kernel)
		}
		w, err := attachcost.ParseWay(c.way)
		if err != nil {
			return nil, err
		}
		counts, err := counted(all[at], w, c.direction, c.functions, records)
		if err != nil {
			return nil, err
		}
		c.model = counts.AllRounds()
	}
	return out, nil
}

// measuredTable is all of it as a table.
func measuredTable(all []comparison) (results.Table, error) {
	t := results.Table{Name: "measured", Columns: []results.Column{
		{Name: "kernel", Doc: "instruction set and release"},
		{Name: "way", Doc: "how functions are attached to"},
		{Name: "direction", Doc: "attach or detach"},
		{Name: "functions", Doc: "attached to"},
		{Name: "kind", Doc: "reading: a single one; formula: what was found for any number"},
		{Name: "model", Doc: "rounds counted here"},
		{Name: "measured", Doc: "interrupts of the quietest receiver"},
		{Name: "difference", Doc: "measured beyond the model"},
		{Name: "background", Doc: "whether a few wakeups come on top of the formula"},
		{Name: "source", Doc: "of the measurement"},
	}}
	for i := range all {
		c := &all[i]
		kind := "formula"
		if c.reading {
			kind = "reading"
		}
		if err := t.Add(c.kernel, c.way, c.direction, c.functions, kind, c.model, c.measured, c.difference(), c.background, c.source); err != nil {
			return t, err
		}
	}
	return t, nil
}
