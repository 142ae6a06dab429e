// Package flushcause asks what address order costs: a batch closes when it is
// full, and when the next address is lower than the last.
package flushcause

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

const (
	name     = "flush-cause"
	question = "What does the order of addresses cost? A batch of patches closes when its vector is full, and when the next address " +
		"is lower than the last: how many rounds does each cause, and how many would one sort save?"
)

// Experiment is the question.
var Experiment = experiments.Experiment{
	Name: name, Question: question,
	Short: "what does address order cost? every order, per cause, and what one sort would save",
	About: "flush-cause counts the batches of one update that enables every record, for every order in which\n" +
		"they can be queued and every size of the vector, by what closed them. Nothing is executed. Tables\n" +
		"are those of real kernels and generated ones whose groups do not ascend; --records takes your own\n" +
		"kernel's list (/sys/kernel/tracing/available_filter_functions_addrs, as root).",
	Examples: []string{
		"flush-cause --out flush-cause",
		"flush-cause --records /sys/kernel/tracing/available_filter_functions_addrs",
		"flush-cause --records gen:n=45000,groups=64,order=grouped --buffer 256 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.Run {
		r := &request{}
		f.StringArrayVar(&r.records, "records", nil, "`table` of records: a built-in one, a file or gen:...; repeatable (default: those of real kernels, and three generated ones)")
		f.StringVar(&r.options.Kallsyms, "kallsyms", "", "`file` with the addresses for a list of functions without")
		experiments.Buffers(f, &r.buffers, "128,170,256,dynamic")
		experiments.Machine(f, &r.roles, "8")
		return r.run
	},
}

// request is what the flags ask for.
type request struct {
	records []string
	options records.Options
	buffers []sched.Buffer
	roles   []cpus.Role
}

// generated are tables whose groups do not ascend: as few as kernels have, many,
// and one whose records nobody has sorted.
var generated = []string{
	"gen:n=45000,groups=3,order=grouped",
	"gen:n=45000,groups=64,order=grouped,modules=0.1",
	"gen:n=45000,order=random",
}

func (r *request) sources() []string {
	if len(r.records) > 0 {
		return r.records
	}
	var out []string
	for _, b := range records.Builtins() {
		out = append(out, b.Name)
	}
	return append(out, generated...)
}

// protocol queues in a vector on every instruction set: what one kernel does, and
// what the order would cost elsewhere.
const protocol = "breakpoint"

var orders = []sched.Ordering{sched.Table, sched.Sorted, sched.Shuffled, sched.Descending}

// row is one combination, and what it takes when the same patches are sorted.
type row struct {
	sim.PlanRow
	source string
	sorted int // rounds
}

// saved is what one sort would save.
func (r *row) saved() int { return r.Rounds - r.sorted }

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "source", Doc: "table of records"},
		{Name: "arch", Doc: "instruction set"},
		{Name: "order", Doc: "order in which patches are queued"},
		{Name: "buffer", Doc: "slots of the vector that they are queued in"},
		{Name: "cpus", Doc: "CPUs by role"},
		{Name: "groups", Doc: "runs of records that are sorted inside"},
		{Name: "patches", Doc: "records changed"},
		{Name: "flushes", Doc: "batches"},
		{Name: "flush_full", Doc: "batches closed because no slot was left"},
		{Name: "flush_order", Doc: "batches closed because the next address was lower"},
		{Name: "flush_final", Detail: true, Doc: "batches closed because nothing followed"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "ipis_per_cpu", Doc: "interrupts that each CPU but the sender takes"},
		{Name: "ipis", Detail: true, Doc: "interrupts that all CPUs take together"},
		{Name: "rounds_sorted", Detail: true, Doc: "rounds when the same patches are sorted first"},
		{Name: "rounds_saved", Doc: "rounds that one sort would save"},
	}}
}

func (r *row) cells() []any {
	return []any{
		r.source, r.Arch.Traits().Name, r.Order.String(), r.Buffer.String(), cpus.FormatRoles(r.Roles), r.Groups, r.Patches,
		r.Flushes, r.FlushFull, r.FlushOrder, r.FlushFinal, r.Rounds, r.IPIsPerCPU, r.IPIs, r.sorted, r.saved(),
	}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	sources, err := experiments.Open(ctx, r.sources(), r.options)
	if err != nil {
		return nil, err
	}
	a := &answer{sources: len(sources), buffers: r.buffers}
	for _, src := range sources {
		for _, order := range orders {
			for _, buffer := range r.buffers {
				c := sim.Config{Arch: src.Arch, Protocol: protocol, Table: src.Table, Roles: r.roles, Seed: lab.Seed, Buffer: buffer, Order: order}
				row, err := count(ctx, c)
				if err != nil {
					return a.answer(), err
				}
				a.rows = append(a.rows, row)
				if err := lab.Add(row.cells()...); err != nil {
					return a.answer(), err
				}
			}
		}
	}
	return a.answer(), nil
}

// count counts a combination, and the same one sorted.
func count(ctx context.Context, c sim.Config) (r row, err error) {
	r.source = strings.TrimSpace(c.Table.Name())
	for _, order := range []sched.Ordering{sched.Sorted, c.Order} {
		c.Order = order
		j, err := sim.NewJob(c)
		if err != nil {
			return r, err
		}
		r.sorted = r.Rounds // on the second way round
		if r.PlanRow, err = j.Count(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}
