// Package pareto asks which vector of patches to choose: the cheapest that keeps to
// a budget of interrupts on isolated CPUs.
package pareto

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "pareto"
	question = "Which buffer should I choose? What is the cheapest choice that lets isolated CPUs take no more interrupts per millisecond " +
		"than a budget allows, what does it cost, and what would the next cheaper one take?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "which buffer should I choose? the cheapest under a budget of interrupts on isolated CPUs",
	About: "pareto enables every record once for each choice, on the timed engine with the costs of some\n" +
		"machines, and picks for each budget the cheapest choice that keeps to it. A choice is a size of\n" +
		"the vector, with interrupts or with deferral (breakpoint-lazy), or what the architecture does by\n" +
		"itself (native). Cheapest is, in this order: nothing to pay while nothing is patched (deferral\n" +
		"makes each entry into the kernel dearer), the fewest pages of memory, the shortest update. Times are modelled.",
	Examples: []string{
		"pareto --out pareto",
		"pareto --calibration jump-label-24 --budget 0,0.1,1 --format csv",
		"pareto --calibration vm-2@8 --cpus busy=4,isolated=4 --measure burst --budget 1,5,20",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		for _, x := range r.Fields("vm-2@8,jump-label-24,refcount-480,graviton2", "64,128,170,256,512,1024,2048,4096,8192,16384,dynamic") {
			experiments.Register(f, x)
		}
		experiments.Register(f, experiments.Rates(&r.budgets, "budget", "0,0.5,1,2,5,10", "`list` of budgets: interrupts a millisecond that an isolated CPU may take"))
		measures(f, &r.measure)
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	modelled.Setting
	budgets []float64
	measure measure
}

// The protocols that queue in a vector.
const (
	withInterrupts = "breakpoint"
	withDeferral   = "breakpoint-lazy"
)

// row is a budget on one machine.
type row struct {
	machine experiments.Calibrated
	roles   []cpus.Role
	budget  float64
	choice  *choice // nil: none keeps to it
	nearest *choice // of those that are cheaper and do not, the one that takes least; nil if there is none
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "calibration", Doc: "machine that times are modelled of"},
		{Name: "cpus", Doc: "CPUs by role"},
		{Name: "budget_per_ms", Doc: "interrupts a millisecond that an isolated CPU may take"},
		{Name: "measure", Detail: true, Doc: "mean over the update, or the most in one millisecond"},
		{Name: "protocol", Doc: "the choice; empty where none keeps to the budget"},
		{Name: "buffer", Doc: "its slots; empty where nothing is queued"},
		{Name: "taken_per_ms", Doc: "interrupts a millisecond that take an isolated CPU out of user space, modelled"},
		{Name: "ipis_isolated_max", Detail: true, Doc: "most interrupts that an isolated CPU takes in the update, in the kernel too"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "buffer_bytes", Detail: true, Doc: "size of the vector"},
		{Name: "buffer_pages", Doc: "size of the vector in pages of 4096 bytes"},
		{Name: "update_ns", Doc: "from the first verification to the last answer, modelled"},
		{Name: "exposure_ns", Detail: true, Doc: "mean time that a site held a breakpoint, modelled; empty where there is none"},
		{Name: "entry_ns", Doc: "what each entry of an isolated CPU into the kernel takes longer, for ever, modelled"},
		{Name: "cheaper_protocol", Detail: true, Doc: "of all that are cheaper, the choice that takes least"},
		{Name: "cheaper_buffer", Doc: "its slots"},
		{Name: "cheaper_per_ms", Doc: "what that would take: more than the budget"},
	}}
}

func (r *row) cells(m measure) []any {
	cells := []any{r.machine.Name, cpus.FormatRoles(r.roles), r.budget, m.String()}
	if c := r.choice; c != nil {
		exposure := any(results.Empty)
		if c.Buffered {
			exposure = int64(c.Modelled.Exposure)
		}
		cells = append(cells, c.Protocol, c.slots(), c.taken, c.IsolatedMax, c.Rounds, c.of(c.BufferBytes), c.of(c.BufferPages), int64(c.Modelled.Update), exposure, c.standing)
	} else {
		for range 10 {
			cells = append(cells, results.Empty)
		}
	}
	if c := r.nearest; c != nil {
		return append(cells, c.Protocol, c.slots(), c.taken)
	}
	return append(cells, results.Empty, results.Empty, results.Empty)
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	a := &answer{request: r}
	for _, m := range r.Machines {
		choices, err := r.choices(ctx, lab, m)
		if err != nil { // the cheapest is not known before all are
			return a.answer(), err
		}
		a.done = append(a.done, ladder{m, choices})
		for _, row := range a.done[len(a.done)-1].rows(r.budgets) {
			if err := lab.Add(row.cells(r.measure)...); err != nil {
				return a.answer(), err
			}
		}
	}
	return a.answer(), nil
}

// protocols are what there is to choose from on an instruction set: what it does by
// itself where that queues nothing, and vectors.
func protocols(native *poke.Protocol) []string {
	if native.Batching == poke.Buffered {
		return []string{withInterrupts, withDeferral}
	}
	return []string{poke.Native, withInterrupts, withDeferral}
}
