// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results/points"
	"github.com/textpoke/textpoke/sim"
)

// searchFlags is the flags that say how a search is made.
type searchFlags struct {
	check.Search
	rate  bool
	swarm int
}

func (s *searchFlags) fields() []*choice.Field {
	return append(s.Search.Fields(), fields("search", s)...)
}

// search is questions that are put to the checker.
type search struct {
	*common
	*searchFlags
	questions []*check.Question
	options   explore.Options
	trace     string // the file of the one question's counterexample, "" for none

	rows    []check.VerdictRow
	at      int               // the question of the last search
	found   []*explore.Result // of the searches for it
	unsaved error             // why the counterexample is not in its file
}

// searches is how many there are for a question.
func (s *search) searches() int { return max(s.swarm, 1) }

// points are the searches for all questions.
func (s *search) points() *points.Sweep[*explore.Result] {
	all := &points.Sweep[*explore.Result]{
		Point: func(ctx context.Context, n int, give func(*explore.Result)) (string, []string, error) {
			r, err := s.search(ctx, s.questions[n/s.searches()], n%s.searches())
			if err == nil {
				give(r)
			}
			return "", nil, err
		}}
	for _, q := range s.questions {
		key := strings.Join(q.Flags(), " ")
		for n := range s.searches() {
			if all.Keys = append(all.Keys, key); s.swarm > 0 {
				all.Keys[len(all.Keys)-1] += fmt.Sprintf(", search %d", n)
			}
		}
	}
	return all
}

// search puts one question to the checker, watched on a terminal, or is one of a swarm.
func (s *search) search(ctx context.Context, q *check.Question, n int) (*explore.Result, error) {
	o := s.options
	if s.swarm > 0 {
		return q.Roam(ctx, explore.Member{Number: uint64(n), Reduce: o.Reduce, States: cmp.Or(o.LimitStates, explore.SwarmStates)})
	}
	switch {
	case s.cores > 0:
		o.Workers = s.cores
	case s.stderrIsTerminal():
		o.Watch = func(p explore.Progress) { s.overwrite(p.String()) }
	}
	row, err := q.Ask(ctx, o)
	return row.Result, err
}

// answers writes a row for each question. The error says what they mean for the exit code.
func (s *search) answers(ctx context.Context, out *output) error {
	all := s.points()
	sent, err := submit(ctx, s.common, all, nil)
	if err != nil {
		return err
	}
	way := points.Way[*explore.Result]{Workers: 1}
	switch {
	case sent != nil:
		way.Await = sent.rows.Await
	case s.swarm > 0:
		way.Workers = s.options.Workers
	}
	out.above = func() string { return s.answerLine(s.rows) }
	err = s.each(ctx, out, 1, func(_ int, out *output) error {
		way.Take = func(n int, r *explore.Result, _ bool) error { return s.take(out, n, r) }
		lost, err := all.Run(ctx, way)
		if err == nil {
			err = s.notDone(lost, len(all.Keys))
		}
		return err
	})
	if err = errors.Join(err, sent.end(ctx, err == nil)); err != nil {
		return err
	}
	switch out.exit {
	case exitNo:
		return errNo
	case exitCut:
		return errCut
	}
	return nil
}

// take takes the result of a search. With the last of a question it writes the row. The way that a swarm has found must
// break the live machine, too.
func (s *search) take(out *output, n int, r *explore.Result) error {
	q := s.questions[n/s.searches()]
	if n/s.searches() != s.at {
		s.at, s.found = n/s.searches(), nil // some of the question before were lost
	}
	if s.found = append(s.found, r); s.swarm > 0 && s.queue == "" {
		s.overwrite(fmt.Sprintf("%d of %d searches", len(s.found), s.searches()))
	}
	if len(s.found) < s.searches() {
		return nil
	}
	best := explore.Best(s.found)
	s.found = nil
	if s.swarm > 0 && best.Verdict == explore.Unsafe {
		if _, err := check.Replay(sim.LiveEngine, q.Model, best.Trace); err != nil {
			return err
		}
	}
	row := check.VerdictRow{Question: q, Result: best, Options: s.options, Rate: s.rate, Swarm: uint64(s.swarm)}
	s.rows = append(s.rows, row)
	switch row.Verdict {
	case explore.Unsafe:
		out.exit = exitNo
	case explore.NotFound:
		s.kept = "a swarm that finds nothing proves nothing"
		fallthrough
	case explore.Incomplete:
		s.logger().Warn(row.CutShort())
		out.exit = cmp.Or(out.exit, exitCut)
	}
	s.unsaved = s.save(&row) // before anything is printed: its reader may have gone
	return out.add(check.Columns.Cells(&row)...)
}

// save writes the counterexample where one is asked for.
func (s *search) save(r *check.VerdictRow) error {
	switch {
	case s.trace == "":
		return nil
	case r.Verdict != explore.Unsafe || r.Trace == nil:
		s.logger().Warn("no counterexample, nothing is saved", zap.String("trace", s.trace))
		return nil
	}
	return r.Trace.Save(s.trace)
}
