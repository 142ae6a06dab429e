// Package fprobe asks which of the four costs of fprobe matters, by switching each of
// them off, and turns published per cents of throughput into time, which can be added.
package fprobe

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

const (
	name     = "fprobe"
	question = "Which of the four costs of fprobe matters: saving all registers, the list function, hooking every return, or the pool that hooks are " +
		"taken from? And what do the published per cents of throughput mean in time?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "which of the four costs matters? each switched off, counted and timed; per cents turned into time before they are added",
	About: "fprobe calls a function with every combination of the four costs that fprobe had on arm64 in\n" +
		"2022, for a program on entry and for one on entry and return. It counts loads, registers saved\n" +
		"and contended words exactly, and times the calls on this machine (--no-time leaves that out).\n" +
		"A published hit of p per cent of throughput is time x 1/(1 - p/100): times can be added (--add),\n" +
		"per cents cannot, and --add-as percent says why. With --out it writes the published hits as\n" +
		"time into hits.csv, and a picture of them.",
	Examples: []string{
		"fprobe --out fprobe",
		"fprobe --add bpf-on-direct-calls,bpf-on-fprobe-optimised --no-time",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		f.StringVar(&r.file, "published", "", "`file` in place of the published hits: CSV with mechanism, performance_hit_percent")
		f.StringSliceVar(&r.add, "add", nil, "`list` of mechanisms of that table whose costs are added up, as if all were attached")
		f.StringVar(&r.addAs, "add-as", asTime, "what is added: time; percent is refused")
		f.IntVar(&r.others, "others", 0, "`number` of tracers of other functions, which the list function walks too")
		experiments.Register(f, experiments.Counts(&r.threads, "threads", "1,2", "`list` of numbers of threads that call at once; those beyond the CPUs of this machine are left out", 1, 1024))
		f.BoolVar(&r.noTime, "no-time", false, "time nothing: the same bytes on every machine")
		f.IntVar(&r.repeats, "repeats", 15, "`number` of measurements of each row, 6 or more")
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	file    string
	add     []string
	addAs   string
	others  int
	threads []int
	noTime  bool
	repeats int
}

// maxOthers is as many tracers of other functions as are attached.
const maxOthers = 10_000

func (r *request) check() error {
	if !r.noTime && r.repeats < fit.MinMedian {
		return fmt.Errorf("--repeats %d: want %d or more: fewer measurements bound no median with 95 %% confidence", r.repeats, fit.MinMedian)
	}
	if r.others < 0 || r.others > maxOthers {
		return fmt.Errorf("--others %d: want 0 to %d", r.others, maxOthers)
	}
	if r.addAs != asTime && r.addAs != asPercent {
		return fmt.Errorf("--add-as %q: %w", r.addAs, spelling.NotOneOf(r.addAs, []string{asTime, asPercent}))
	}
	return nil
}

// The four costs, as bits of a combination, in the order in which they were listed.
const (
	allRegs = 1 << iota
	listFunc
	alwaysHook
	freelist
	combinations
)

// cost is one of them for people.
type cost struct {
	bit         int
	name, ended string
}

// costs are Florent Revest's, RFC of 2022-11-08, with what ended each.
var costs = []cost{
	{allRegs, "all registers are saved", "only those of arguments are, Linux 6.2"},
	{listFunc, "the list function is called", "a literal at the site names the ops, Linux 6.3"},
	{alwaysHook, "every return is hooked", "only where somebody is called there"},
	{freelist, "hooks are from a pool", "from the task's shadow stack, Linux 6.14"},
}

// switches are a combination as package dispatch has it.
func switches(c int) dispatch.FprobeCosts {
	return dispatch.FprobeCosts{AllRegs: c&allRegs != 0, ListFunc: c&listFunc != 0, AlwaysHook: c&alwaysHook != 0, Freelist: c&freelist != 0}
}

// row is one combination.
type row struct {
	combination int
	exit        bool // somebody is called on return
	counts      dispatch.Counts
	threads     int // 0: it was not timed
	live        fit.Estimate
	each        []float64 // measurements
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "all_registers", Doc: "cost 1: all registers are saved, and not only those of arguments"},
		{Name: "list_function", Doc: "cost 2: the call goes over the list function, and not by the site's literal"},
		{Name: "always_hook", Doc: "cost 3: the return is hooked though nobody is called there"},
		{Name: "pool", Doc: "cost 4: what a hook needs is from a pool that all CPUs share, and not from the task's stack"},
		{Name: "exit_handler", Doc: "whether somebody is called on return"},
		{Name: "loads", Doc: "objects that one call and its return read because their address was read: exact"},
		{Name: "walked", Doc: "entries of the list that are walked: exact"},
		{Name: "registers_saved", Doc: "registers saved, on entry and on return: exact"},
		{Name: "atomics", Doc: "read-modify-writes of words that other CPUs change too: exact"},
		{Name: "threads", Doc: "threads that called at once; empty where nothing was timed"},
		{Name: "live_ns", Doc: "time of one call and its return on this machine, median of the measurements"},
		{Name: "live_low_ns", Doc: "lower end of the interval that holds the median with 95 % confidence"},
		{Name: "live_high_ns", Doc: "and its upper end"},
	}}
}

func (r *row) cells() []any {
	has := func(bit int) bool { return r.combination&bit != 0 }
	cells := []any{has(allRegs), has(listFunc), has(alwaysHook), has(freelist), r.exit, r.counts.Loads, r.counts.Walked, r.counts.Saved, r.counts.Atomics}
	if r.threads == 0 {
		return append(cells, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	return append(cells, r.threads, r.live.Value, r.live.Low, r.live.High)
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	a := &answer{request: r}
	var err error
	if a.hits, err = published.Hits.Read(r.file); err != nil {
		return nil, err
	}
	if a.sum, err = r.addUp(a.hits); err != nil {
		return nil, err
	}
	rows, cells, err := r.prepare()
	if err != nil {
		return nil, err
	}
	a.asked = len(rows)
	if !r.noTime {
		if a.untraced, err = r.time(ctx, rows, cells); err != nil {
			return a.answer(), err
		}
	}
	for _, row := range rows {
		a.rows = append(a.rows, row)
		if err := lab.Add(row.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// threadsHere are the numbers of threads that this machine has CPUs for; one 0 where
// nothing is timed.
func (r *request) threadsHere() []int {
	if r.noTime {
		return []int{0}
	}
	out := slices.DeleteFunc(slices.Clone(r.threads), func(n int) bool { return n > runtime.GOMAXPROCS(0) })
	if len(out) == 0 {
		return []int{1}
	}
	return out
}

// label names a combination by what is left of the four.
func label(combination int) string {
	var parts []string
	for i, c := range costs {
		if combination&c.bit != 0 {
			parts = append(parts, fmt.Sprint(i+1))
		}
	}
	switch len(parts) {
	case 0:
		return "none"
	case 1:
		return "cost " + parts[0]
	}
	return "costs " + strings.Join(parts, ", ")
}
