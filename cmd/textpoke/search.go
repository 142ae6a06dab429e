// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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

// ask puts questions to the checker and writes a row each. The error says what the
// answers mean for the exit code.
func (s *searchFlags) ask(ctx context.Context, c *common, questions []*check.Question, o explore.Options,
	out *output) (rows []check.VerdictRow, err error) {
	unsafe, cut := false, false
	out.above = func() string { return c.answerLine(rows) }
	err = c.each(ctx, out, len(questions), func(i int, out *output) error {
		row, err := c.answer(ctx, questions[i], o)
		if err != nil {
			return err
		}
		row.Rate = s.rate
		rows = append(rows, row)
		unsafe, cut = unsafe || row.Verdict == explore.Unsafe, cut || row.Verdict == explore.Incomplete
		out.exit = exitOf(unsafe, cut)
		return out.add(check.Columns.Cells(&row)...)
	})
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

// answer puts one question to the checker, watched by whoever sits at a terminal.
func (c *common) answer(ctx context.Context, q *check.Question, o explore.Options) (check.VerdictRow, error) {
	if c.stderrIsTerminal() {
		o.Watch = func(p explore.Progress) { c.overwrite(p.String()) }
	}
	row, err := q.Ask(ctx, o)
	if err == nil && row.Verdict == explore.Incomplete {
		c.logger().Warn(row.CutShort())
	}
	return row, err
}
