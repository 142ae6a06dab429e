// Package callops asks whether a tracer of another function slows a call down, with
// a list of all tracers and with a literal at each site that names its own.
package callops

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

const (
	name     = "call-ops"
	question = "Does a tracer of another function slow my call? Tracers of the function against tracers of others, with one list of all of them and with a " +
		"literal at each site that names its own: entries walked, time on this machine, and time predicted from a fit?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "does an unrelated tracer slow my call? counted, measured, and predicted from published rows",
	About: "call-ops goes through the rows of a published table: so many tracers of a function, so many of\n" +
		"another, and calls of the first. It counts what a call walks and loads with a list function\n" +
		"(without_call_ops) and with a literal at the site (with_call_ops), times both on this machine\n" +
		"(--no-time leaves that out), and predicts the published rows that --hold names from lines through\n" +
		"the others. Every integer that the table derives from another is derived again; what does not\n" +
		"follow is listed, and in a table of --published it makes the exit code 1. With --out it writes\n" +
		"the lines into fits.csv.",
	Examples: []string{
		"call-ops --out call-ops",
		"call-ops --published board.csv --hold 10 --no-time --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		f.StringVar(&r.file, "published", "", "`file` in place of the published table: CSV with kernel, block, relevant_tracers, irrelevant_tracers, calls, total_ns, per_call_ns, overhead_ns")
		experiments.Register(f, experiments.Counts(&r.hold, "hold", "2,100", "`list` of numbers of tracers, the ones that vary: rows that are held out of the fits and predicted", 0, maxTracers))
		f.BoolVar(&r.noTime, "no-time", false, "time nothing: the same bytes on every machine")
		f.IntVar(&r.repeats, "repeats", 15, "`number` of measurements of each row, 6 or more")
		return r.run
	},
}.Experiment()

// maxTracers is as many as one row may have.
const maxTracers = 10_000

// request is what the flags ask for.
type request struct {
	file    string
	hold    []int
	noTime  bool
	repeats int
}

func (r *request) check(rows []published.CallCost) error {
	if !r.noTime && r.repeats < fit.MinMedian {
		return fmt.Errorf("--repeats %d: want %d or more: fewer measurements bound no median with 95 %% confidence", r.repeats, fit.MinMedian)
	}
	for _, row := range rows {
		if n := row.Relevant + row.Irrelevant; n > maxTracers {
			return fmt.Errorf("%s:%d: %d tracers: want %d at most", r.from(), row.Line, n, maxTracers)
		}
	}
	return nil
}

// from is what the table is called in messages.
func (r *request) from() string {
	if r.file == "" {
		return published.CallCosts.Name
	}
	return r.file
}

// row is one of the published ones, three ways.
type row struct {
	published.CallCost
	counts     counts
	live       fit.Estimate // of one call, in ns
	timed      bool
	perCall    float64 // published total over published calls
	overhead   float64 // that without the kernel's untraced call
	path       *path   // nil: nobody traces the function
	held       bool
	prediction fit.Estimate // of the overhead
}

// counts are what one call takes.
type counts struct{ loads, walked, called int64 }

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "kernel", Doc: "without_call_ops: the list function for every call; with_call_ops: a literal at the site"},
		{Name: "block", Doc: "what varies: irrelevant0 and irrelevant1 the tracers of another function, relevant those of this one"},
		{Name: "relevant_tracers", Doc: "tracers of the function that is called"},
		{Name: "irrelevant_tracers", Doc: "tracers of another one"},
		{Name: "loads", Doc: "objects that one call reads because their address was read: exact"},
		{Name: "walked", Doc: "entries of the list that it walks: exact"},
		{Name: "called", Doc: "callbacks that it calls: exact"},
		{Name: "live_ns", Doc: "time of one call on this machine, median of the measurements"},
		{Name: "live_low_ns", Doc: "lower end of the interval that holds the median with 95 % confidence"},
		{Name: "live_high_ns", Doc: "and its upper end"},
		{Name: "published_ns", Doc: "time of one call by the published total"},
		{Name: "overhead_ns", Doc: "that less the same of an untraced call"},
		{Name: "path", Doc: "which line predicts it: literal, skip or call; empty where nobody traces the function"},
		{Name: "held_out", Doc: "whether the line does not know this row"},
		{Name: "predicted_ns", Doc: "what the line says; empty where there is none"},
		{Name: "predicted_low_ns", Doc: "lower end of the interval that one more measurement falls into with 95 % confidence"},
		{Name: "predicted_high_ns", Doc: "and its upper end"},
		{Name: "error_percent", Doc: "predicted less published, of published"},
	}}
}

func (r *row) cells() []any {
	cells := []any{r.Kernel, r.Block, r.Relevant, r.Irrelevant, r.counts.loads, r.counts.walked, r.counts.called}
	if r.timed {
		cells = append(cells, r.live.Value, r.live.Low, r.live.High)
	} else {
		cells = append(cells, results.Empty, results.Empty, results.Empty)
	}
	cells = append(cells, r.perCall)
	if r.path == nil {
		return append(cells, results.Empty, results.Empty, results.Empty, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	cells = append(cells, r.overhead, r.path.name, r.held)
	if r.path.line == nil {
		return append(cells, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	return append(cells, r.prediction.Value, r.prediction.Low, r.prediction.High, r.errorPercent())
}

// errorPercent is how far the prediction is off.
func (r *row) errorPercent() any {
	if r.overhead == 0 {
		return results.Empty
	}
	return 100 * (r.prediction.Value/r.overhead - 1)
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	costs, err := published.CallCosts.Read(r.file)
	if err != nil {
		return nil, err
	}
	if err := r.check(costs); err != nil {
		return nil, err
	}
	a := &answer{request: r, asked: len(costs)}
	if a.slips, err = published.CallSlips(r.from(), costs); err != nil {
		return nil, err
	}
	if r.file != "" {
		for _, s := range a.slips {
			lab.Log.Warn(s.String())
		}
	}
	if a.m1, err = published.M1Calls.Read(""); err != nil {
		return nil, err
	}
	all, cells, err := r.prepare(costs)
	if err != nil {
		return nil, err
	}
	a.paths = r.predict(all)
	if !r.noTime {
		if err := r.time(ctx, all, cells); err != nil {
			return a.answer(), err
		}
	}
	for _, row := range all {
		a.rows = append(a.rows, row)
		if err := lab.Add(row.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}
