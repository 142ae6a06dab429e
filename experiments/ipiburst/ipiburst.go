// Package ipiburst asks how many interrupts switching the function tracer costs
// each CPU, with vectors of fixed size, with one that grows, and with one batch
// for everything, and takes the measurements of 2019 apart.
package ipiburst

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

const (
	name     = "ipi-burst"
	question = "How many interrupts does switching the function tracer on and off cost each CPU? Vectors of fixed size against one that holds " +
		"all patches and against one batch for everything, on every instruction set; and which of the interrupts measured in 2019 were those of patches?"
)

// Experiment is the question.
var Experiment = experiments.Experiment{
	Name: name, Question: question,
	Short: "how many interrupts does enabling and disabling cost each CPU? and the measurements of 2019, taken apart",
	About: "ipi-burst counts the rounds of one update of every record, with what each architecture's current\n" +
		"kernel does and with breakpoints in vectors of some sizes, for the tables of real kernels and for\n" +
		"45,000 records. Of the interrupts that were measured in October 2019 it says which were rounds for\n" +
		"records: exactly where that is known, as an interval where it is not. With --out it also writes\n" +
		"those measurements as /proc/interrupts shows them (interrupts.txt) and the intervals (split.csv).",
	Examples: []string{
		"ipi-burst --out ipi-burst",
		"ipi-burst --arch x86_64 --buffer 128,1024,dynamic --cpus 64 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.Run {
		r := &request{}
		experiments.Arches(f, &r.arches)
		experiments.Buffers(f, &r.buffers, "170,256,dynamic")
		experiments.Machine(f, &r.roles, "8")
		f.StringVar(&r.records, "records", generated, "`table` of records beside those of real kernels: a built-in one, a file or gen:...")
		f.StringVar(&r.file, "published", "", "`file` in place of the published counts: CSV with patching, action, cpu, before, after, delta, source")
		return r.run
	},
}

// generated is as many functions as the estimates of 2019 are about.
const generated = "gen:n=45000,order=sorted"

// request is what the flags ask for.
type request struct {
	arches        []isa.Arch
	buffers       []sched.Buffer
	roles         []cpus.Role
	records, file string
}

// row is one combination.
type row struct {
	sim.PlanRow
	source string
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "source", Doc: "table of records"},
		{Name: "arch", Doc: "instruction set"},
		{Name: "protocol", Doc: "how text is changed: native is what the current kernel does"},
		{Name: "buffer", Doc: "slots of the vector that patches are queued in; empty where there is none"},
		{Name: "cpus", Doc: "CPUs by role"},
		{Name: "patches", Doc: "records changed"},
		{Name: "flushes", Doc: "batches; empty where nothing is queued"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise, for enabling and again for disabling"},
		{Name: "ipis_per_cpu", Doc: "interrupts that each CPU but the sender takes, each time"},
		{Name: "ipis", Doc: "interrupts that all CPUs take together, each time"},
	}}
}

func (r *row) cells() []any {
	buffer, flushes := any(results.Empty), any(results.Empty)
	if r.Buffered {
		buffer, flushes = r.Buffer.String(), r.Flushes
	}
	return []any{r.source, r.Arch.Traits().Name, r.Protocol, buffer, cpus.FormatRoles(r.Roles), r.Patches, flushes, r.Rounds, r.IPIsPerCPU, r.IPIs}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	counts, err := published.Interrupts.Read(r.file)
	if err != nil {
		return nil, err
	}
	a := &answer{request: r}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	if a.measured, err = split(readings); err != nil {
		return nil, err
	}
	jobs, err := r.jobs(ctx, lab.Seed)
	if err != nil {
		return nil, err
	}
	a.asked = len(jobs)
	for _, j := range jobs {
		row := &row{source: j.Table.Name()}
		if row.PlanRow, err = j.Count(ctx); err != nil {
			return a.answer(), err
		}
		a.rows = append(a.rows, row)
		if err := lab.Add(row.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// jobs are the combinations: each architecture's own kernel and the other table,
// with what the kernel does, and with breakpoints in vectors and in one batch.
func (r *request) jobs(ctx context.Context, seed uint64) (out []*sim.Job, err error) {
	for _, arch := range r.arches {
		own := records.DefaultFor(arch.Traits().Name)
		sources, err := experiments.Open(ctx, []string{own, r.records}, records.Options{})
		if err != nil {
			return nil, err
		}
		for _, src := range sources {
			if t := src.Table.Arch(); t != "" && t != arch.Traits().Name {
				continue
			}
			for _, p := range protocolsOf(arch.Traits()) {
				buffers := r.buffers
				if poke.Named(p, arch.Traits()).Batching != poke.Buffered {
					buffers = []sched.Buffer{sched.Dynamic}
				}
				for _, b := range buffers {
					j, err := sim.NewJob(sim.Config{Arch: arch, Protocol: p, Table: src.Table, Roles: r.roles, Buffer: b, Seed: seed})
					if err != nil {
						return nil, err
					}
					out = append(out, j)
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no combination is left to do")
	}
	return out, nil
}

// The protocol that queues in a vector, and the one that has one batch.
const (
	inVectors = "breakpoint"
	global    = "breakpoint-global"
)

// protocolsOf leaves out what native is already.
func protocolsOf(t isa.Traits) []string {
	if poke.Named(poke.Native, t).Batching == poke.Buffered {
		return []string{poke.Native, global}
	}
	return []string{poke.Native, inVectors, global}
}
