// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/textpoke/textpoke/check"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check/explore"
)

// searchFlags is the flags that say how a search is made: what it may cost, and leave
// out.
type searchFlags struct {
	reduce                   string
	exact, rate              bool
	jobs                     int
	limitStates, limitMemory uint64 // memory in MiB
	limitTime                time.Duration
}

func (s *searchFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.reduce, "reduce", "all",
		"`parts` that the search may leave out: "+strings.Join(explore.ReductionNames(), ", "))
	offer(cmd, "reduce", explore.ReductionNames())
	f.BoolVar(&s.exact, "exact", false,
		"keep whole states, not fingerprints of 64 bits: slower and larger, but never wrong")
	f.IntVar(&s.jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on")
	f.Uint64Var(&s.limitStates, "limit-states", 0, "stop at this `number` of states, at the end of a level; 0 for none")
	f.Uint64Var(&s.limitMemory, "limit-memory", 4096, "stop when states and queue take so many `MiB`; 0 for no limit")
	f.DurationVar(&s.limitTime, "limit-time", 0, "stop after this `time`, such as 10m; 0 for none")
	f.BoolVar(&s.rate, "rate", false, "fill in states_per_s, which is another number every time")
}

func (s *searchFlags) options() (explore.Options, error) {
	reduce, err := named("reduce", s.reduce, explore.ReductionNames(), explore.ParseReductions)
	switch {
	case err != nil:
		return explore.Options{}, err
	case s.jobs < 1:
		return explore.Options{}, fmt.Errorf("--jobs %d: want 1 or more", s.jobs)
	case s.limitMemory > 1<<40:
		return explore.Options{}, fmt.Errorf("--limit-memory %d: want at most %d MiB, or 0 for no limit", s.limitMemory,
			1<<40)
	case s.limitTime < 0:
		return explore.Options{}, fmt.Errorf("--limit-time %v: want a time above 0, or 0 for none", s.limitTime)
	}
	return explore.Options{
		Reduce: reduce, Exact: s.exact, Workers: s.jobs,
		LimitStates: s.limitStates, LimitTime: s.limitTime, LimitMemory: s.limitMemory << 20,
	}, nil
}

// asked are questions that are put to the checker.
type asked struct {
	*common
	questions []*check.Question
	options   explore.Options
}

// ask puts one question to the checker, watched by whoever sits at a terminal.
func (a *asked) ask(ctx context.Context, n int) (*explore.Result, error) {
	o := a.options
	switch {
	case a.employ != nil:
		o.Workers = a.cores
	case a.stderrIsTerminal():
		o.Watch = func(p explore.Progress) { a.overwrite(p.String()) }
	}
	row, err := a.questions[n].Ask(ctx, o)
	return row.Result, err
}

// work is the questions, as points.
func (a *asked) work() work {
	w := work{do: parcels(a.ask)}
	for _, q := range a.questions {
		w.keys = append(w.keys, strings.Join(q.Flags(), " "))
	}
	return w
}

// hire finds who puts the questions. end is to be called when all is written, or never will be.
func (a *asked) hire(ctx context.Context) (by crew[*explore.Result], end func(complete bool) error, err error) {
	if a.queue == "" {
		return here[*explore.Result](a.ask), func(bool) error { return nil }, nil
	}
	sent, err := a.submit(ctx, a.work().keys, nil)
	if err != nil {
		return nil, nil, err
	}
	return away[*explore.Result]{sent}, func(complete bool) error { return sent.end(ctx, complete) }, nil
}

// answers writes a row for each question. The error says what they mean for the exit code.
func (a *asked) answers(ctx context.Context, rate bool, out *output) (rows []check.VerdictRow, err error) {
	by, end, err := a.hire(ctx)
	if err != nil {
		return nil, err
	}
	unsafe, cut := false, false
	out.above = func() string { return a.answerLine(rows) }
	err = a.each(ctx, out, len(a.questions), func(i int, out *output) error {
		result, err := by.do(ctx, i)
		if err != nil {
			return err
		}
		row := check.VerdictRow{Question: a.questions[i], Result: result, Options: a.options, Rate: rate}
		if row.Verdict == explore.Incomplete {
			a.logger().Warn(row.CutShort())
		}
		rows = append(rows, row)
		unsafe, cut = unsafe || row.Verdict == explore.Unsafe, cut || row.Verdict == explore.Incomplete
		out.exit = exitOf(unsafe, cut)
		return out.add(check.Columns.Cells(&row)...)
	})
	err = errors.Join(err, end(err == nil))
	switch {
	case err != nil:
		return rows, err
	case unsafe:
		return rows, errNo
	case cut:
		return rows, errCut
	}
	return rows, nil
}
