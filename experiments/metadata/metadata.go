// Package metadata asks which table a global trampoline should keep what it knows
// of each function in: what lookups do, which is counted, how long they take on the
// machine that it runs on, and what published throughputs say of it.
package metadata

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	tables "github.com/textpoke/textpoke/tracers/metadata"
)

const (
	name     = "metadata"
	question = "Hash, resizable hash or padding: where should a trampoline for all functions keep what it knows of each? Time and memory against " +
		"the functions that are hooked. And what do the published throughputs say?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "hash, resizable hash or padding? comparisons, cache lines, memory and time against functions hooked",
	About: "metadata fills each table with functions at the distances of a real kernel's and looks them up.\n" +
		"Comparisons, loads that wait for one another and cache lines are counted, and are the same\n" +
		"everywhere. Times are this machine's: hot calls one function for a while, as the published bench\n" +
		"does, and the next one then; random calls them all in random order. Each is the median of\n" +
		"--repeats measurements with the interval that holds it with 95 % confidence; --no-time leaves\n" +
		"them out. The published pairs are taken apart: what a comparison costs, and whether one pair\n" +
		"predicts the other.",
	Examples: []string{
		"metadata --out metadata",
		"metadata --table fixed-256,resizable --functions 1,1000,43871 --no-time --format csv",
		"metadata --published mine.csv --all 60000 --out mine",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Names(f, &r.kinds, "table", "`list` of tables of what is known of each function", tables.KindNames(), tables.ParseKind)
		experiments.Register(f, experiments.Counts(&r.functions, "functions", "1,16,64,256,1024,4096,16384,43871,50000,65536", "`list` of numbers of functions that are hooked", 1, maxFunctions))
		f.StringVar(&r.file, "published", "", "`file` in place of the published throughputs: CSV with bench, table, mps; tables are \"N fixed buckets\" and resizable")
		f.IntVar(&r.all, "all", 43871, "`number` of functions that were hooked when those were taken; 43,871 is from another run of the same bench in the same year")
		f.BoolVar(&r.noTime, "no-time", false, "count only: the same bytes on every machine")
		f.IntVar(&r.repeats, "repeats", 11, "`number` of measurements of each table, 6 or more")
		return r.run
	},
}.Experiment()

// maxFunctions is more than a kernel has, and little enough that their text fits
// into memory.
const maxFunctions = 1 << 18

// minRepeats is how many measurements an interval of their median needs.
const minRepeats = 6

// request is what the flags ask for.
type request struct {
	kinds     []tables.Kind
	functions []int
	file      string
	all       int
	noTime    bool
	repeats   int
}

func (r *request) check() error {
	if r.all < 1 || r.all > maxFunctions {
		return fmt.Errorf("--all %d: want a number from 1 to %d", r.all, maxFunctions)
	}
	if !r.noTime && r.repeats < minRepeats {
		return fmt.Errorf("--repeats %d: want %d or more: fewer measurements bound no median with 95 %% confidence", r.repeats, minRepeats)
	}
	return nil
}

// row is one table with some functions in it.
type row struct {
	kind      tables.Kind
	functions int
	counts    *counts // nil for tables that do not say what they do
	times     *times  // nil with --no-time
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "table", Doc: "what is searched"},
		{Name: "functions", Doc: "functions that are hooked"},
		{Name: "comparisons_mean", Doc: "comparisons of addresses until a function is found, mean over all of them; empty for Go's own maps"},
		{Name: "comparisons_max", Doc: "and the most"},
		{Name: "loads_mean", Doc: "loads that each wait for the one before, to the record's contents"},
		{Name: "lines_mean", Doc: "cache lines of 64 bytes that they touch and that other functions' lookups need not"},
		{Name: "bytes_per_function", Doc: "memory of the table, without the records, over the functions"},
		{Name: "heap_bytes_per_function", Detail: true, Doc: "memory that the allocator gave for table and records, and for padding the text; measured"},
		{Name: "hot_ns", Doc: "time of a lookup when one function is called again and again, median of the measurements on this machine"},
		{Name: "hot_low_ns", Doc: "lower end of the interval that holds the median with 95 % confidence"},
		{Name: "hot_high_ns", Doc: "and its upper end"},
		{Name: "hot_of_one", Doc: "that time over the time in a table of the same kind with one function, taken in turns"},
		{Name: "hot_of_one_low", Detail: true, Doc: "lower end of its interval"},
		{Name: "hot_of_one_high", Detail: true, Doc: "and its upper end"},
		{Name: "random_ns", Doc: "time of a lookup when all functions are called in random order"},
		{Name: "random_low_ns", Doc: "lower end of its interval"},
		{Name: "random_high_ns", Doc: "and its upper end"},
		{Name: "repeats", Detail: true, Doc: "measurements; each is of thousands of lookups"},
	}}
}

func (r *row) cells(repeats int) []any {
	cells := []any{r.kind.String(), r.functions}
	if c := r.counts; c != nil {
		cells = append(cells, c.comparisons, c.most, c.loads, c.lines, c.bytes)
	} else {
		cells = append(cells, results.Empty, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	if t := r.times; t != nil {
		cells = append(cells, t.heap)
		for _, e := range []fit.Estimate{t.hot, t.ofOne, t.random} {
			cells = append(cells, e.Value, e.Low, e.High)
		}
		return append(cells, repeats)
	}
	for len(cells) < len(table().Columns) {
		cells = append(cells, results.Empty)
	}
	return cells
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	a := &answer{request: r}
	var err error
	if a.pairs, err = readPairs(r.file); err != nil {
		return nil, err
	}
	if a.calls, err = published.MultiCallTimes.Read(""); err != nil {
		return nil, err
	}
	if a.grown, err = countAll(ctx, r.all, lab.Seed); err != nil {
		return nil, err
	}
	for _, n := range r.functions {
		f, err := functionsOf(ctx, n, lab.Seed)
		if err != nil {
			return a.answer(), err
		}
		for _, k := range r.kinds {
			row, err := r.look(ctx, k, f)
			if err != nil {
				return a.answer(), err
			}
			a.rows = append(a.rows, row)
			if err := lab.Add(row.cells(r.repeats)...); err != nil {
				return a.answer(), err
			}
		}
	}
	return a.answer(), nil
}
