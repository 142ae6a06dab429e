// SPDX-License-Identifier: Apache-2.0

// Package lab runs experiments for those who ask over the network: one at a time, for
// a bounded time, and keeps what came out.
package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

// The answers to what cannot be done.
var (
	ErrFull   = errors.New("too many experiments wait")
	ErrName   = errors.New("no such experiment")
	ErrClosed = errors.New("no more experiments are started")
)

// Config says what a Lab runs, and for how long.
type Config struct {
	Store       *journal.Store
	Log         *zap.Logger
	Revision    string // of the program
	Experiments []*experiments.Experiment
	Queue       int           // how many may wait; default 16
	Longest     time.Duration // that one may take; default 10 min
}

// Lab runs experiments. All methods may be called at the same time by many.
type Lab struct {
	cfg    Config
	ctx    context.Context
	end    context.CancelFunc
	wake   chan struct{} // holds one while there may be something to run
	ended  chan struct{} // closed when nothing runs any more
	mu     sync.Mutex
	closed bool
	queue  []*run
	active map[int64]*run // queue and what runs
}

// State is how far a run has got.
type State string

// The states. The first two are on their way, the others are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Result is one run of an experiment.
type Result struct {
	ID    int64
	Name  string
	State State
	Error string // why it failed
	Summary
	Submitted, Ended time.Time
	Files            []journal.File // without what they hold
}

// Summary is what is kept of a run beside its files, as one more of them.
type Summary struct {
	Seed   uint64            `json:"seed"`
	Config map[string]string `json:"config,omitempty"` // the fields that were set
	Rows   int               `json:"rows"`             // that are finished
	Answer string            `json:"answer"`           // in a line
	No     string            `json:"no,omitempty"`     // what is not as it must be
}

// summaryName is that file's.
const summaryName = "summary.json"

// run is one that has not ended.
type run struct {
	Result
	experiment *experiments.Experiment
	request    *experiments.Request
	ctx        context.Context
	cancel     context.CancelFunc
	done       chan struct{}
}

// Start makes a lab. Runs that an earlier process left unfinished have failed.
func Start(cfg Config) (*Lab, error) {
	if cfg.Queue == 0 {
		cfg.Queue = 16
	}
	if cfg.Longest == 0 {
		cfg.Longest = 10 * time.Minute
	}
	if err := cfg.Store.AbandonRuns(time.Now()); err != nil {
		return nil, err
	}
	l := &Lab{cfg: cfg, wake: make(chan struct{}, 1), ended: make(chan struct{}), active: map[int64]*run{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	go l.work()
	return l, nil
}

// Close cancels what runs and what waits, and returns when nothing does any more.
func (l *Lab) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	<-l.ended
}

// Experiments are those that can be run.
func (l *Lab) Experiments() []*experiments.Experiment { return l.cfg.Experiments }

// Question is what is asked for: an experiment by name, the seed of every random
// choice, and texts for some fields of its Config, by their keys. A field that holds a
// list may have several.
type Question struct {
	Name   string
	Seed   uint64
	Config map[string][]string
}

// Submit puts an experiment at the end of the queue. The error is ErrName, a
// *ConfigError, ErrFull or ErrClosed, or says why the queue could not be kept.
func (l *Lab) Submit(q Question) (Result, error) {
	for _, e := range l.Experiments() {
		if e.Name != q.Name {
			continue
		}
		x := &run{experiment: e, request: e.New(), done: make(chan struct{})}
		x.Seed = q.Seed
		var err error
		if x.Config, err = configure(x.request, q.Config); err != nil {
			return Result{}, err
		}
		return l.submit(x)
	}
	return Result{}, fmt.Errorf("%w: %.40q", ErrName, q.Name)
}

func (l *Lab) submit(x *run) (Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return Result{}, ErrClosed
	case len(l.queue) >= l.cfg.Queue:
		return Result{}, ErrFull
	}
	kept, err := l.cfg.Store.BeginRun(x.experiment.Name, time.Now())
	if err != nil {
		return Result{}, err
	}
	x.ID, x.Name, x.State, x.Submitted = kept.ID, kept.Name, Queued, kept.Began
	x.ctx, x.cancel = context.WithTimeout(l.ctx, l.cfg.Longest)
	l.queue, l.active[x.ID] = append(l.queue, x), x
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
	return x.Result, nil
}

// next takes the first that waits.
func (l *Lab) next() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	x := l.queue[0]
	l.queue = l.queue[1:]
	x.State = Running
	return x
}

// work runs one after the other.
func (l *Lab) work() {
	defer close(l.ended)
	for {
		if x := l.next(); x != nil {
			l.carryOut(x)
			continue
		}
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
	}
}

// carryOut runs one and keeps what came out.
func (l *Lab) carryOut(x *run) {
	defer x.cancel()
	table := x.experiment.Table()
	answer, err := l.answer(x, &table)
	end := Result{Summary: Summary{Seed: x.Seed, Config: x.Config, Rows: len(table.Rows)}}
	if answer != nil {
		end.Answer = answer.Headline
		if answer.No != nil {
			end.No = answer.No.Error()
		}
	}
	files, ferr := written(table, answer, end.Summary)
	if err == nil {
		err = ferr
	}
	kept := journal.Failed
	switch {
	case err == nil:
		end.State, kept = Done, journal.Live
	case errors.Is(err, context.DeadlineExceeded):
		end.State, end.Error = Failed, fmt.Sprintf("it took longer than %v", l.cfg.Longest)
	case errors.Is(err, context.Canceled):
		end.State, kept = Cancelled, journal.Cancelled
	default:
		end.State, end.Error = Failed, err.Error()
	}
	if err := l.cfg.Store.EndRun(x.ID, kept, end.Error, time.Now(), files); err != nil {
		l.cfg.Log.Error("results not kept", zap.Int64("result", x.ID), zap.Error(err))
	}
	l.cfg.Log.Info("experiment ended", zap.Int64("result", x.ID), zap.String("name", x.Name),
		zap.String("state", string(end.State)), zap.String("error", end.Error))
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, x.ID)
	close(x.done)
}

// answer asks the experiment. A panic in it is its
// failure, and not the server's.
func (l *Lab) answer(x *run, table *results.Table) (answer *experiments.Answer, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			answer, err = nil, fmt.Errorf("it panicked: %v", broken)
		}
	}()
	if err := x.ctx.Err(); err != nil {
		return nil, err
	}
	return x.request.Run(x.ctx, experiments.Lab{Seed: x.Seed, Revision: l.cfg.Revision, Log: l.cfg.Log,
		Add: func(cells ...any) error {
			if err := table.Add(cells...); err != nil {
				return err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			x.Rows = len(table.Rows)
			return nil
		}})
}
