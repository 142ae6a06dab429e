// Package trigger asks what a program costs each call of a traced function by the
// way it is attached, and whether a published table bears out what its own text
// says of it.
package trigger

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "trigger"
	question = "What does a program cost each call of a traced function, by the way it is attached: fentry, fexit, fmod_ret, kprobe and their multi " +
		"forms? And do the published figures bear out what is said of them?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "fentry, fexit, fmod_ret, kprobe and their multi forms: nanoseconds a call, and the claims of the series put to the test",
	About: "trigger turns the published throughput of each way to attach a program into the time of one call,\n" +
		"less what the loop takes with nobody attached. What the series says of its figures it puts to both\n" +
		"of its tables: to five runs, pair by pair, and to the one run of everything, with the spread of\n" +
		"the five. \"About 10 % worse\" and \"almost the same\" hold where two one-sided tests say so, within\n" +
		"--margin points of throughput; that nothing significant was found is not enough. With --out it\n" +
		"writes the tests into claims.csv.",
	Examples: []string{
		"trigger --out trigger",
		"trigger --published mine.csv --published-runs my-runs.csv --margin 1 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		f.StringVar(&r.file, "published", "", "`file` in place of the published throughputs: CSV with mechanism, mps, plusminus")
		f.StringVar(&r.runsFile, "published-runs", "", "`file` in place of the published runs: CSV with run, fentry_mps, fentry_multi_mps, fentry_multi_all_mps, fexit_mps, fexit_multi_mps, fmodret_mps, fmodret_multi_mps")
		f.Float64Var(&r.margin, "margin", 2.5, "`points` of throughput by which a claim in per cent may be off and still hold; claims are multiples of 5, so that 2.5 is nearest")
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	file, runsFile string
	margin         float64
}

func (r *request) check() error {
	if !(r.margin > 0 && r.margin <= 50) {
		return fmt.Errorf("--margin %v: want points above 0, up to 50", r.margin)
	}
	return nil
}

// loops are the mechanisms that attach nothing: loops to take off, or of another
// kind (tools/testing/selftests/bpf/benchs/bench_trigger.c, Linux 6.10 and later).
var loops = map[string]bool{"usermode-count": true, "syscall-count": true, published.KernelCount: true}

// row is one way to attach.
type row struct {
	published.Trigger
	callNS float64 // of one call, less the loop; 0 for the loops
	loop   bool
	runs   spread
	known  bool // there are runs of it
	apartP float64
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "mechanism", Doc: "how the program is attached; the -count rows are loops without one"},
		{Name: "mps", Doc: "10^6 calls a second, published"},
		{Name: "plusminus_mps", Doc: "its spread over the seconds of one run, published"},
		{Name: "iteration_ns", Doc: "time of one turn of the loop: 1000 / mps"},
		{Name: "call_ns", Doc: "that less the loop with nobody attached (kernel-count); empty for loops"},
		{Name: "runs_mps", Doc: "geometric mean of the other table's runs; empty where it has none"},
		{Name: "runs_sd_percent", Doc: "how much these runs differ from each other"},
		{Name: "apart_percent", Doc: "throughput of the one run against the mean of the others"},
		{Name: "apart_p", Doc: "p-value of the hypothesis that it is one more of these runs, Holm's correction included"},
	}}
}

func (r *row) cells() []any {
	cells := []any{r.Mechanism, r.MPS, r.PlusMinus, r.NS(), any(results.Empty)}
	if !r.loop {
		cells[4] = r.callNS
	}
	if !r.known {
		return append(cells, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	return append(cells, r.runs.mean, r.runs.percent, r.apart(), r.apartP)
}

// apart is by how much the one run is off the others' mean, in per cent.
func (r *row) apart() float64 { return 100 * (r.MPS/r.runs.mean - 1) }

func (r *request) run(_ context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	triggers, err := published.Triggers.Read(r.file)
	if err != nil {
		return nil, err
	}
	runs, err := published.TriggerRuns.Read(r.runsFile)
	if err != nil {
		return nil, err
	}
	if len(runs) < 3 {
		return nil, fmt.Errorf("--published-runs %s: %d runs say nothing of how they spread, want 3 or more", r.runsFile, len(runs))
	}
	a := &answer{request: r, runCount: len(runs)}
	if a.rows, err = r.rows(triggers, runs); err != nil {
		return nil, err
	}
	if a.claims, err = r.judge(triggers, runs); err != nil {
		return nil, err
	}
	for _, row := range a.rows {
		if err := lab.Add(row.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// rows takes the loop off, and holds both tables against each other.
func (r *request) rows(triggers []published.Trigger, runs []published.TriggerRun) (out []*row, err error) {
	base := find(triggers, published.KernelCount)
	if base == nil {
		return nil, fmt.Errorf("%s: no row %s, whose time is taken off the others'", r.from(), published.KernelCount)
	}
	var p []float64
	for _, t := range triggers {
		row := &row{Trigger: t, loop: loops[t.Mechanism]}
		if row.callNS = t.NS() - base.NS(); !row.loop && row.callNS <= 0 {
			return nil, fmt.Errorf("%s:%d: %s %v: is not slower than %s, %v on line %d, which does the same with nobody attached",
				r.from(), t.Line, t.Mechanism, t.MPS, base.Mechanism, base.MPS, base.Line)
		}
		if row.known = has(runs, t.Mechanism); row.known {
			if row.runs, row.apartP, err = another(runs, t); err != nil {
				return nil, err
			}
			p = append(p, row.apartP)
		}
		out = append(out, row)
	}
	share(out, p)
	return out, nil
}

// from is what the table is called in messages.
func (r *request) from() string {
	if r.file == "" {
		return published.Triggers.Name
	}
	return r.file
}

// find is the row of a mechanism; nil if there is none.
func find(triggers []published.Trigger, mechanism string) *published.Trigger {
	for i := range triggers {
		if triggers[i].Mechanism == mechanism {
			return &triggers[i]
		}
	}
	return nil
}
