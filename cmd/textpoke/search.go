// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/sim"
)

// searchFlags is the flags that say how a search is made: what it may cost, and leave
// out.
type searchFlags struct {
	reduce                   string
	exact, rate              bool
	jobs                     int
	limitStates, limitMemory uint64 // memory in MiB
	limitTime                time.Duration
	swarm                    uint64
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
	f.Uint64Var(&s.swarm, "swarm", 0,
		"`number` of searches, each in an order of its own and of --limit-states (1000000 unless told), in place of one of "+
			"everything: for finding where that does not fit, and not for proving")
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
	swarm     uint64 // searches for each question, in place of one of everything; 0 for none
	trace     string // the file of the one question's counterexample, "" for none
	unsaved   error  // why it is not there
}

// searches is how many there are for a question.
func (a *asked) searches() int { return max(int(a.swarm), 1) }

// ask puts one question to the checker, watched by whoever sits at a terminal.
func (a *asked) ask(ctx context.Context, n int) (*explore.Result, error) {
	o, q := a.options, a.questions[n/a.searches()]
	if a.swarm > 0 {
		return q.Roam(ctx, explore.Member{Number: uint64(n % a.searches()), Reduce: o.Reduce,
			States: cmp.Or(o.LimitStates, explore.SwarmStates)})
	}
	switch {
	case a.employ != nil:
		o.Workers = a.cores
	case a.stderrIsTerminal():
		o.Watch = func(p explore.Progress) { a.overwrite(p.String()) }
	}
	row, err := q.Ask(ctx, o)
	return row.Result, err
}

// work is the questions, as points.
func (a *asked) work() work {
	w := work{do: parcels(a.ask)}
	for _, q := range a.questions {
		key := strings.Join(q.Flags(), " ")
		for n := range a.searches() {
			if w.keys = append(w.keys, key); a.swarm > 0 {
				w.keys[len(w.keys)-1] += fmt.Sprintf(", search %d", n)
			}
		}
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

// result is what the searches for a question come to. The way that a swarm has found must break
// the live machine, too.
func (a *asked) result(ctx context.Context, by crew[*explore.Result], i int) (*explore.Result, error) {
	if a.swarm == 0 {
		return by.do(ctx, i)
	}
	var all []*explore.Result
	workers := a.options.Workers
	if a.queue != "" {
		workers = 1 // that waits
	}
	err := inOrder(ctx, a.searches(), workers, func(ctx context.Context, n int, give func(*explore.Result)) error {
		r, err := by.do(ctx, i*a.searches()+n)
		if err == nil {
			give(r)
		}
		return err
	}, func(r *explore.Result) error {
		if all = append(all, r); a.queue == "" {
			a.overwrite(fmt.Sprintf("%d of %d searches", len(all), a.searches()))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	best := explore.Best(all)
	if best.Verdict == explore.Unsafe {
		_, err = check.Replay(sim.LiveEngine, a.questions[i].Model, best.Trace)
	}
	return best, err
}

// lostAtEnd is what was lost, after the last question.
func (a *asked) lostAtEnd(i int) error {
	if i+1 < len(a.questions) {
		return nil
	}
	return a.lostPoints(len(a.questions))
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
		result, err := a.result(ctx, by, i)
		if a.lose(err) {
			return a.lostAtEnd(i)
		}
		if err != nil {
			return err
		}
		row := check.VerdictRow{Question: a.questions[i], Result: result, Options: a.options, Rate: rate,
			Swarm: a.swarm}
		open := row.Verdict == explore.Incomplete || row.Verdict == explore.NotFound
		if open {
			a.logger().Warn(row.CutShort())
		}
		if row.Verdict == explore.NotFound {
			a.kept = "a swarm that finds nothing proves nothing"
		}
		rows = append(rows, row)
		unsafe, cut = unsafe || row.Verdict == explore.Unsafe, cut || open
		out.exit = exitOf(unsafe, cut)
		a.unsaved = a.save(&row) // before anything is printed: whoever reads that may have gone
		return errors.Join(out.add(check.Columns.Cells(&row)...), a.lostAtEnd(i))
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

// save writes the counterexample where one is asked for.
func (a *asked) save(r *check.VerdictRow) error {
	switch {
	case a.trace == "":
		return nil
	case r.Verdict != explore.Unsafe || r.Trace == nil:
		a.logger().Warn("no counterexample, nothing is saved", zap.String("trace", a.trace))
		return nil
	}
	return r.Trace.Save(a.trace)
}
