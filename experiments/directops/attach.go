package directops

import (
	"github.com/textpoke/textpoke/kernels/attachcost"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
)

// nearTo is how many CPUs the machine should have that times are modelled for.
const nearTo = 64

// attachRow is attaching a trampoline to each of some functions, and detaching
// them.
type attachRow struct {
	kernel      *attachcost.Kernel
	way         attachcost.Way
	functions   int
	on, off     attachcost.Counts
	onNS, offNS float64
	machine     string
}

// attach counts it for every kernel of the instruction sets that are asked for.
func (r *request) attach(kernels []*attachcost.Kernel) (out []*attachRow, err error) {
	for _, arch := range r.arches {
		own := arch.Traits().Name
		m := attachcost.NewMachine(calibration.Nearest(own, nearTo), attachcost.Assumed)
		for _, k := range kernels {
			if k.Arch != own {
				continue
			}
			for _, name := range []string{"fentry", "tracing-multi"} {
				w, err := attachcost.ParseWay(name)
				if err != nil {
					return nil, err
				}
				if w.In(k) != nil {
					continue
				}
				for _, n := range r.trampolines {
					row := &attachRow{kernel: k, way: w, functions: n, machine: m.Name}
					if row.on, err = attachcost.Attach(k, w, int64(n), tableRecords); err != nil {
						return nil, err
					}
					if row.off, err = attachcost.Detach(k, w, int64(n), tableRecords); err != nil {
						return nil, err
					}
					row.onNS, row.offNS = attachcost.Whole(m.Waterfall(&row.on, true)), attachcost.Whole(m.Waterfall(&row.off, false))
					out = append(out, row)
				}
			}
		}
	}
	return out, nil
}

// tableRecords is how many functions the table has.
const tableRecords = 50000

// attachTable is all of it as a table.
func attachTable(all []*attachRow) (results.Table, error) {
	t := results.Table{Name: "attach", Columns: []results.Column{
		{Name: "kernel", Doc: "instruction set and release"},
		{Name: "way", Doc: "fentry: one by one; tracing-multi: all in one update"},
		{Name: "functions", Doc: "that have a trampoline each, of a table of 50,000"},
		{Name: "ops", Doc: "objects that they are attached through"},
		{Name: "attach_rounds", Doc: "of interrupts"},
		{Name: "detach_rounds", Doc: "of interrupts"},
		{Name: "entries_copied", Doc: "of hashes, attaching and detaching"},
		{Name: "grace_periods", Doc: "that detaching waits for, one after the other"},
		{Name: "calibration", Doc: "machine that times are modelled for"},
		{Name: "attach_ns", Doc: "modelled time"},
		{Name: "detach_ns", Doc: "modelled time"},
	}}
	for _, r := range all {
		if err := t.Add(r.kernel.Name, r.way.Name, r.functions, r.on.Ops, r.on.AllRounds(), r.off.AllRounds(), r.on.Copied+r.off.Copied, r.off.Waits, r.machine, r.onNS, r.offNS); err != nil {
			return t, err
		}
	}
	return t, nil
}
