// SPDX-License-Identifier: Apache-2.0

// Package metadata asks in which table a global trampoline should keep its records of
// functions. It counts the loads of lookups, times them on this machine, and compares
// them with published throughputs.
package metadata

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	tables "github.com/textpoke/textpoke/tracers/metadata"
)

// Config says which tables are filled, and with how many functions.
// Its fields are the flags of metadata.experiment.
type Config struct {
	Tables    []tables.TableKind
	Functions []int
	Published string
	All       int
	NoTime    bool
	Repeats   int
}

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: experiments.Text("metadata/metadata.experiment"), Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*choice.Field {
	return []*choice.Field{
		choice.List(&c.Tables, "table", strings.Join(tables.KindNames(), ","),
			"`list` of tables of what is known of each function",
			choice.Named(tables.KindNames(), tables.ParseKind, tables.TableKind.String)),
	}
}

// row is one table with some functions in it.
type row struct {
	Kind      tables.TableKind
	Functions int
	Counts    *counts // nil for tables that do not say what they do
	Times     *times  // nil with NoTime
	repeats   int
}

// Heap is the memory of a function; empty where others' hides it.
func (r *row) Heap() any {
	if r.Times == nil || r.Functions < 1000 {
		return results.Empty
	}
	return r.Times.Heap
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	a := &answer{Study: s}
	pairs, err := readPairs(c.Published, c.All)
	if err != nil {
		return nil, err
	}
	calls, err := calls()
	if err != nil {
		return nil, err
	}
	if a.Grown, err = countAll(ctx, c.All, s.Seed); err != nil {
		return nil, err
	}
	type point struct {
		functions *functions
		kind      tables.TableKind
	}
	var points []point
	for _, n := range c.Functions {
		f, err := functionsOf(ctx, n, s.Seed)
		if err != nil {
			return nil, err
		}
		for _, k := range c.Tables {
			points = append(points, point{f, k})
		}
	}
	err = experiments.Each(ctx, s, points, func(p point) (*row, error) { return c.look(ctx, p.kind, p.functions) })
	return a, cmp.Or(err, experiments.Beside(s, "pairs", pairs), experiments.Beside(s, "grown", []*counts{a.Grown}),
		experiments.Beside(s, "guesses", guesses(pairs)), experiments.Beside(s, "calls", calls))
}

// spacing is the mean distance of functions: that of the 42,757 records of the
// built-in table x86_64-6.12 is 320 bytes.
const spacing = 320

// functions are those that are hooked, in the order in which they are.
type functions struct {
	addrs []records.Addr
	text  tables.Text
	seed  uint64
}

func functionsOf(ctx context.Context, n int, seed uint64) (*functions, error) {
	t, err := records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted,spacing=%d,seed=%d", n, spacing, seed),
		records.Options{})
	if err != nil {
		return nil, err
	}
	a := t.Addrs()
	return &functions{a, tables.Text{Start: a[0] - 64, End: a[len(a)-1] + 64}, seed}, nil
}

// fill makes a table with a record of each of the first n functions.
func (f *functions) fill(k tables.TableKind, n int) (tables.Table, error) {
	tab, err := tables.New(k, f.text)
	if err != nil {
		return nil, err
	}
	for i, at := range f.addrs[:n] {
		// One fentry program on each, as fentry_multi_all attaches.
		r := &tables.Record{Func: at, Args: uint8(i % tables.MaxArgs)}
		if err := tab.Set(r); err != nil {
			return nil, err
		}
	}
	if r, ok := tab.(*tables.Resizable); ok {
		r.Settle()
	}
	return tab, nil
}

// counts are what lookups do, means over all functions.
type counts struct {
	Comparisons, Loads, Lines float64
	Most                      int
	Bytes                     float64 // of the table, a function
}

func count(tab tables.Counted, addrs []records.Addr) *counts {
	var sum tables.Cost
	c := &counts{}
	for _, at := range addrs {
		one := tab.Cost(at)
		sum.Comparisons += one.Comparisons
		sum.Loads += one.Loads
		sum.Lines += one.Lines
		c.Most = max(c.Most, one.Comparisons)
	}
	n := float64(len(addrs))
	c.Comparisons, c.Loads, c.Lines = float64(sum.Comparisons)/n, float64(sum.Loads)/n, float64(sum.Lines)/n
	c.Bytes = float64(tab.Bytes()) / n
	return c
}

// countAll counts what a resizable table does with all functions in it.
func countAll(ctx context.Context, n int, seed uint64) (*counts, error) {
	f, err := functionsOf(ctx, n, seed)
	if err != nil {
		return nil, err
	}
	tab, err := f.fill(tables.ResizableHash, n)
	if err != nil {
		return nil, err
	}
	return count(tab.(tables.Counted), f.addrs), nil
}

// times are what lookups take, in nanoseconds.
type times struct {
	Hot, Random fit.Estimate
	OfOne       fit.Estimate // hot over hot in a table with one function
	Heap        float64      // bytes a function
}

const (
	// In random order there are so many calls at least that no branch predictor
	// learns them, and every function is called: a table that is touched in part
	// only would seem to fit into a smaller cache.
	randomCalls = 1 << 14
	// A function is hot for so many calls, and so many are in turn: evenly from
	// those that were hooked first to those that were hooked last, since that
	// is where they are in a chain.
	hotCalls, hotFunctions = 1 << 8, 64
	// A measurement is the fastest of so many passes over all calls, or more, until
	// leastTurn is over: whatever disturbs a pass makes it slower. Where one takes
	// longer than longPass, a tick of the scheduler is a small part of it: then one pass
	// is enough, and as few measurements as bound a median.
	leastPasses, leastTurn, longPass = 2, time.Millisecond, 20 * time.Millisecond
)

// look fills a table, counts and times.
func (c *Config) look(ctx context.Context, k tables.TableKind, f *functions) (*row, error) {
	n := len(f.addrs)
	before := heap()
	tab, err := f.fill(k, n)
	if err != nil {
		return nil, err
	}
	row := &row{Kind: k, Functions: n, repeats: c.Repeats}
	if counted, ok := tab.(tables.Counted); ok {
		row.Counts = count(counted, f.addrs)
	}
	if c.NoTime {
		return row, nil
	}
	t := &times{Heap: float64(heap()-before) / float64(n)}
	row.Times = t
	one, err := f.fill(k, 1)
	if err != nil {
		return nil, err
	}
	single := slices.Repeat(f.addrs[:1], hotCalls*hotFunctions)
	hot, random := f.hot(), f.random()
	for _, calls := range [][]records.Addr{hot, random} {
		if pass(tab, calls) > longPass { // what comes first finds cold caches
			row.repeats = min(row.repeats, fit.MinMedian)
		}
	}
	turns := []func() float64{
		func() float64 { return turn(tab, hot) },
		func() float64 { return turn(one, single) },
		func() float64 { return turn(tab, random) },
	}
	timed, err := clock.Turns(ctx, row.repeats, len(turns), func(i int) float64 { return turns[i]() })
	if err != nil {
		return nil, err
	}
	ratios := timed[1].Each
	for i := range ratios {
		ratios[i] = timed[0].Each[i] / ratios[i]
	}
	t.Hot, t.Random = timed[0].Estimate, timed[2].Estimate
	t.OfOne, err = fit.Median(ratios)
	return row, err
}

func (f *functions) hot() (calls []records.Addr) {
	for i := range hotFunctions {
		at := f.addrs[(2*i+1)*len(f.addrs)/(2*hotFunctions)]
		for range hotCalls {
			calls = append(calls, at)
		}
	}
	return calls
}

func (f *functions) random() []records.Addr {
	rng := rand.New(rand.NewPCG(f.seed, uint64(len(f.addrs))))
	var calls []records.Addr
	for len(calls) < randomCalls {
		for _, i := range rng.Perm(len(f.addrs)) {
			calls = append(calls, f.addrs[i])
		}
	}
	return calls
}

// turn is the time of one lookup among calls.
func turn(tab tables.Table, calls []records.Addr) float64 {
	start := time.Now()
	fastest := pass(tab, calls)
	for n := 1; fastest < longPass && (n < leastPasses || time.Since(start) < leastTurn); n++ {
		fastest = min(fastest, pass(tab, calls))
	}
	return float64(fastest.Nanoseconds()) / float64(len(calls))
}

// pass looks all calls up. The record is read, as a trampoline would.
func pass(tab tables.Table, calls []records.Addr) time.Duration {
	args, start := 0, time.Now()
	for _, at := range calls {
		args += int(tab.Lookup(at).Args)
	}
	runtime.KeepAlive(args)
	return time.Since(start)
}

// heap is the memory in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
