// SPDX-License-Identifier: Apache-2.0

// Package fprobe asks which of the four costs of fprobe matters, by switching each of
// them off, and turns published per cents of throughput into time, which can be added.
package fprobe

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/call"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Config says what is called, and which published hits are added up.
// Its fields are the flags of fprobe.experiment.
type Config struct {
	Published string
	Add       []string
	AddAs     string
	Others    int
	Threads   []int
	NoTime    bool
	Repeats   int
}

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: experiments.Text("fprobe/fprobe.experiment"), Fields: (*Config).fields, Measure: measure,
}).Experiment()

var anyText = choice.Kind[string]{Type: "text", Format: strings.Clone, Parse: func(s string) (string,
	error) {
	return s, nil
}}

func (c *Config) fields() []*choice.Field {
	return []*choice.Field{
		choice.List(&c.Add, "add", "",
			"`list` of mechanisms of that table whose costs are added up, as if all were attached", anyText),
	}
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
	return dispatch.FprobeCosts{AllRegs: c&allRegs != 0, ListFunc: c&listFunc != 0, AlwaysHook: c&alwaysHook != 0,
		Freelist: c&freelist != 0}
}

// row is one combination.
type row struct {
	combination int
	exit        bool // somebody is called on return
	*call.Call
	threads  int // 0: it was not timed
	live     *fit.Estimate
	untraced *fit.Estimate // a call that no tracer sees, with as many threads
	each     []float64     // measurements
	Source   string        // of the published hits
	first    bool          // it is a row of the first program and number of threads
}

// Costs are those of the combination.
func (r *row) Costs() dispatch.FprobeCosts { return switches(r.combination) }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	a := &answer{Study: s}
	hits, err := published.Hits.Read(c.Published)
	if err != nil {
		return nil, err
	}
	if err := experiments.Beside(s, "hits", hits); err != nil {
		return nil, err
	}
	if a.Sum, err = c.addUp(hits); err != nil {
		return nil, err
	}
	rows, err := c.prepare()
	if err != nil {
		return nil, err
	}
	s.Asked = len(rows)
	if !c.NoTime {
		err = c.time(ctx, rows)
	}
	if err == nil {
		err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) { return r, nil })
	}
	effects, failed := a.effects()
	return a, cmp.Or(err, failed, experiments.Beside(s, "effects", effects))
}

// threadsHere are the numbers of threads that this machine has CPUs for; one 0 where
// nothing is timed.
func (c *Config) threadsHere() []int {
	if c.NoTime {
		return []int{0}
	}
	out := slices.DeleteFunc(slices.Clone(c.Threads), func(n int) bool { return n > runtime.GOMAXPROCS(0) })
	if len(out) == 0 {
		return []int{1}
	}
	return out
}

// Left names the combination by what is left of the four.
func (r *row) Left() string { return label(r.combination) }

// RungOfGroup tells whether it is one of the ladder: a combination with a cost has all those
// that were ended later. Rung is the same of the first program and number of threads.
func (r *row) RungOfGroup() bool { return slices.Contains(rungs(), r.combination) }
func (r *row) Rung() bool        { return r.first && r.RungOfGroup() }

// Ended is what ended the cost that the rung before still had; "" on the first.
func (r *row) Ended() string {
	if i := slices.Index(rungs(), r.combination); i > 0 {
		return costs[i-1].ended
	}
	return ""
}

// Program says what the program is.
func (r *row) Program() string {
	name := "program on entry"
	if r.exit {
		name = "program on entry and return"
	}
	if r.threads > 1 {
		name += fmt.Sprintf(", %d threads", r.threads)
	}
	return name
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

// nodes is what the pool has: enough for all threads.
const nodes = 4096

// way is that of a combination.
func way(combination int) func(dispatch.Config) (*dispatch.Way, error) {
	return func(c dispatch.Config) (*dispatch.Way, error) {
		return dispatch.NewFprobe(c, switches(combination), nodes)
	}
}

// attached is a call of a function with one program, beside others elsewhere.
func attached(combination, others int, exit bool) (*call.Call, error) {
	program := call.Callback()
	if exit {
		program.Func = &tracers.Func{Name: "entry and exit", Entry: tracers.Hit, Exit: tracers.Hit}
	}
	c, err := call.New(way(combination), others, program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label(combination), err)
	}
	return c, nil
}

// prepare makes all combinations, and counts.
func (c *Config) prepare() (rows []*row, err error) {
	for _, threads := range c.threadsHere() {
		for _, exit := range []bool{false, true} {
			for combination := combinations - 1; combination >= 0; combination-- {
				row := &row{combination: combination, exit: exit, threads: threads,
					Source: cmp.Or(c.Published, published.Hits.Source), first: len(rows) < combinations}
				if row.Call, err = attached(combination, c.Others, exit); err != nil {
					return nil, err
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

const (
	// leastRepeat is how long one measurement takes: long against a tick of the clock
	// and the start of a thread.
	leastRepeat = time.Millisecond / 2
	// chunk is how many calls lie between two looks at whether time is up.
	chunk = 64
)

// time times all rows in turns, and beside them a function that nobody traces, by number of threads.
func (c *Config) time(ctx context.Context, rows []*row) error {
	nobody, err := call.New(way(0), 0)
	if err != nil {
		return err
	}
	threads := c.threadsHere()
	times, err := clock.Turns(ctx, c.Repeats, len(threads)+len(rows), func(i int) float64 {
		if i < len(threads) {
			return calls(nobody, threads[i])
		}
		r := rows[i-len(threads)]
		return calls(r.Call, r.threads)
	})
	if err != nil {
		return err
	}
	for i, r := range rows {
		own := &times[len(threads)+i]
		r.each, r.live, r.untraced = own.Each, &own.Estimate, &times[slices.Index(threads, r.threads)].Estimate
	}
	return nil
}

// calls is the time of one call and its return while so many threads call, in
// nanoseconds.
func calls(of *call.Call, threads int) float64 {
	var done atomic.Bool
	var made atomic.Int64
	var ready, all sync.WaitGroup
	ready.Add(threads)
	start := make(chan struct{})
	var begin time.Time
	for i := range threads {
		all.Go(func() {
			task, n := &dispatch.Task{}, int64(0)
			of.Repeat(chunk, task) // what comes first finds cold caches
			ready.Done()
			<-start
			for !done.Load() {
				of.Repeat(chunk, task)
				n += chunk
				if i == 0 && time.Since(begin) >= leastRepeat {
					done.Store(true)
				}
			}
			made.Add(n)
		})
	}
	ready.Wait()
	begin = time.Now()
	close(start)
	all.Wait()
	return float64(threads) * float64(time.Since(begin).Nanoseconds()) / float64(max(made.Load(), 1))
}
