// Package buffersize asks whether a bigger vector of patches is better, and for
// whom: rounds, time of the update, breakpoints, traps, stolen time and memory.
package buffersize

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "buffer-size"
	question = "Is a bigger buffer better? What do rounds, the update's time, the time that sites hold breakpoints, traps, the time stolen " +
		"from CPUs and memory do when more patches fit into the vector, and who is right: \"fewer interrupts\", or \"no performance improvement\"?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "is a bigger buffer better? every cost against the size of the vector, and which sizes are dominated",
	About: "buffer-size enables every record once for each size of the vector, on the timed engine, with\n" +
		"the costs of some machines. It says which sizes are dominated by another one, and splits the\n" +
		"update into stores and rounds: from that follows where ten times the slots are felt and where\n" +
		"they are not. Rounds, traps and memory are counted; times are modelled.",
	Examples: []string{
		"buffer-size --out buffer-size",
		"buffer-size --calibration jump-label-24,jump-label-24@96 --buffer 170,1700 --format csv",
		"buffer-size --calibration vm-2@8 --cpus busy=6,isolated=2 --calls 100000",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		for _, x := range r.Fields("vm-2@8,jump-label-24,refcount-480", "1,16,64,128,170,256,512,1024,1700,4096,16384,dynamic") {
			experiments.Register(f, x)
		}
		return r.run
	},
}.Experiment()

// protocol queues in a vector on every instruction set.
const protocol = "breakpoint"

// request is what the flags ask for.
type request struct{ modelled.Setting }

// row is one size on one machine.
type row struct {
	modelled.Update
	machine experiments.Calibrated
	split   split
	// dominated names the size that is better, for each front; "" where none is.
	dominated [numFronts]string
}

func table() results.Table {
	t := results.Table{Name: name, Columns: []results.Column{
		{Name: "calibration", Doc: "machine that times are modelled of"},
		{Name: "cpus", Doc: "CPUs by role"},
		{Name: "records", Detail: true, Doc: "table of records"},
		{Name: "buffer", Doc: "slots of the vector"},
		{Name: "patches", Detail: true, Doc: "records changed"},
		{Name: "flushes", Detail: true, Doc: "batches"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "ipis_per_cpu", Doc: "interrupts that each CPU but the sender takes"},
		{Name: "buffer_bytes", Doc: "size of the vector"},
		{Name: "buffer_pages", Detail: true, Doc: "size of the vector in pages of 4096 bytes"},
		{Name: "update_ns", Doc: "from the first verification to the last answer, modelled; empty where it was only counted"},
		{Name: "update_formula_ns", Detail: true, Doc: "what the plan's parts add up to, with the mean round"},
		{Name: "rounds_share", Doc: "share of that which is rounds; the rest is stores"},
		{Name: "exposure_ns", Doc: "mean time that a site held a breakpoint, modelled"},
		{Name: "traps", Doc: "times that a CPU ran into a breakpoint"},
		{Name: "trap_time_ns", Doc: "time that all CPUs together spent in traps, modelled"},
		{Name: "trap_mean_ns", Detail: true, Doc: "and one trap on average"},
		{Name: "stolen_mean_ns", Doc: "time taken from a CPU by interrupts and traps, modelled"},
		{Name: "stolen_max_ns", Detail: true, Doc: "from the CPU that lost most, modelled"},
		{Name: "burst_isolated_max", Doc: "most interrupts that an isolated CPU took in one millisecond, modelled"},
	}}
	for _, f := range fronts {
		t.Columns = append(t.Columns, results.Column{Name: f.column, Detail: f.detail, Doc: "size that is no worse in " + f.name + ", and better in one of them"})
	}
	return t
}

func (r *row) cells() []any {
	cells := []any{
		r.machine.Name, cpus.FormatRoles(r.Roles), r.Table.Name(), r.Buffer.String(), r.Patches, r.Flushes, r.Rounds, r.IPIsPerCPU, r.BufferBytes, r.BufferPages,
	}
	formula, share := r.split.update(r.Patches, r.Flushes), r.split.share(r.Patches, r.Flushes)
	if m := r.Modelled; m != nil {
		trapMean := any(results.Empty)
		if r.Traps > 0 {
			trapMean = float64(r.TrapTime()) / float64(r.Traps)
		}
		burst := any(results.Empty)
		if r.HasIsolated {
			burst = r.IsolatedBurst
		}
		cells = append(cells, int64(m.Update), formula, share, int64(m.Exposure), r.Traps, int64(r.TrapTime()), trapMean, m.StolenMean, int64(m.StolenMax), burst)
	} else {
		cells = append(cells, results.Empty, formula, share)
		for range 7 {
			cells = append(cells, results.Empty)
		}
	}
	for _, by := range r.dominated {
		if by == "" {
			cells = append(cells, results.Empty)
		} else {
			cells = append(cells, by)
		}
	}
	return cells
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	a := &answer{request: r}
	for _, m := range r.Machines {
		rows, err := r.machine(ctx, lab, m)
		judge(rows)
		a.rows = append(a.rows, rows...)
		for _, row := range rows {
			if err := lab.Add(row.cells()...); err != nil {
				return a.answer(), err
			}
		}
		if err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// machine goes through the sizes on one machine, and returns those that were
// finished.
func (r *request) machine(ctx context.Context, lab *experiments.Lab, m experiments.Calibrated) (rows []*row, err error) {
	c, err := r.Config(ctx, *lab, m)
	if err != nil {
		return nil, err
	}
	c.Protocol = protocol
	for _, c.Buffer = range r.Buffers {
		out := &row{machine: m}
		if out.split, err = splitOf(c); err != nil {
			return rows, err
		}
		if out.Update, err = modelled.Enable(ctx, *lab, c, r.Limit); err != nil {
			return rows, err
		}
		rows = append(rows, out)
	}
	return rows, nil
}
