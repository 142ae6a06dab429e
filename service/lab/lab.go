// SPDX-License-Identifier: Apache-2.0

// Package lab runs experiments for clients over the network: one at a time, for a bounded
// time, and keeps the results.
package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

// The answers to what cannot be done.
var (
	ErrFull   = errors.New("too many experiments wait")
	ErrName   = errors.New("no such experiment")
	ErrClosed = errors.New("no more experiments are started")
)

// Config says which experiments a Lab runs, and for how long.
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
	coming int // runs that are being written down, each with a place in the queue
	queue  []*run
	active map[int64]*run // queue and what runs
}

// State is how far a run has got.
type State = journal.State

// States lists those that a run can have. The first two are on their way, the others are final.
func States() []State {
	return []State{journal.Queued, journal.Running, journal.Done, journal.Failed, journal.Cancelled}
}

// Result is one run of an experiment.
type Result struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	State State  `json:"state"`
	Error string `json:"error,omitempty"` // why it failed, or begins again
	Summary
	Submitted time.Time      `json:"submitted"`
	Ended     time.Time      `json:"ended,omitzero"`
	Files     []journal.File `json:"files,omitempty"` // without what they hold
}

// Summary is what is kept of a run beside its files, as one more of them.
type Summary struct {
	Seed   uint64            `json:"seed,omitempty"`
	Config map[string]string `json:"config,omitempty"` // the fields that were set
	Rows   int               `json:"rows,omitempty"`   // that are finished
	Answer string            `json:"answer,omitempty"` // in a line
	No     string            `json:"no,omitempty"`     // the condition that does not hold
}

// summaryName is that file's.
const summaryName = "summary.json"

// run is one that has not ended.
type run struct {
	Result
	withdrawn  bool // by a client
	question   Question
	experiment *experiments.Experiment
	request    *experiments.Request
	ctx        context.Context
	cancel     context.CancelFunc
	done       chan struct{}
}

// Start makes a lab. Runs that waited still do, and those that an earlier process was in
// the middle of begin again.
func Start(ctx context.Context, cfg Config) (*Lab, error) {
	cfg.Queue, cfg.Longest = cmp.Or(cfg.Queue, 16), cmp.Or(cfg.Longest, 10*time.Minute)
	waiting, err := cfg.Store.Resume(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	l := &Lab{cfg: cfg, wake: make(chan struct{}, 1), ended: make(chan struct{}), active: map[int64]*run{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	for _, kept := range waiting {
		if err := l.again(kept); err != nil {
			l.end()
			return nil, err
		}
	}
	go l.work()
	return l, nil
}

// again puts a run that waited before a restart into the queue. A run has failed if this program
// does not know its experiment or refuses its fields.
func (l *Lab) again(kept journal.Run) error {
	var q Question
	err := json.Unmarshal([]byte(kept.Request), &q)
	var x *run
	if err == nil {
		x, err = prepare(l.cfg.Experiments, q)
	}
	if err != nil {
		return l.cfg.Store.EndRun(kept.ID, journal.Failed, err.Error(), time.Now(), nil)
	}
	l.enter(x, kept)
	return nil
}

// Close leaves what waits and what runs to the next start, and returns when nothing runs any
// more.
func (l *Lab) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	<-l.ended
}

// Experiments are those that can be run.
func (l *Lab) Experiments() []*experiments.Experiment { return l.cfg.Experiments }

// Question is the request that is kept until it is answered: an experiment by its name, texts for some fields of its
// Config, by their keys, and the seed of every random choice.
type Question struct {
	choice.Request
	Seed uint64
}

// Submit puts an experiment at the end of the queue. The error is ErrName, a
// *ConfigError, ErrFull or ErrClosed, or says why the queue could not be kept.
func (l *Lab) Submit(q Question) (Result, error) {
	x, err := prepare(l.cfg.Experiments, q)
	if err != nil {
		return Result{}, err
	}
	request, err := json.Marshal(q)
	if err != nil {
		return Result{}, err
	}
	if err := l.reserve(); err != nil {
		return Result{}, err
	}
	kept, err := l.cfg.Store.AddRun(x.experiment.Name, string(request), time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming--
	switch {
	case err != nil:
		return Result{}, err
	case l.closed: // the next start finds it
		return l.result(kept), nil
	}
	l.enter(x, kept)
	return x.Result, nil
}

// reserve takes a place in the queue for a run that is being written down.
func (l *Lab) reserve() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case len(l.queue)+l.coming >= l.cfg.Queue:
		return ErrFull
	}
	l.coming++
	return nil
}

// prepare finds an experiment and configures it.
func prepare(known []*experiments.Experiment, q Question) (*run, error) {
	for _, e := range known {
		if e.Name != q.Name {
			continue
		}
		x := &run{question: q, experiment: e, request: e.New(), done: make(chan struct{})}
		x.Seed = q.Seed
		var err error
		x.Config, err = configure(x.request, q.Config)
		return x, err
	}
	return nil, fmt.Errorf("%w: %.40q", ErrName, q.Name)
}

// enter puts a run of the journal into the queue. The caller holds mu, or runs alone.
func (l *Lab) enter(x *run, kept journal.Run) {
	x.ID, x.Name, x.State, x.Submitted, x.Error = kept.ID, kept.Name, journal.Queued, kept.Began, kept.Error
	x.ctx, x.cancel = context.WithCancel(l.ctx)
	l.queue, l.active[x.ID] = append(l.queue, x), x
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
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
	x.State = journal.Running
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
	defer func() { x.cancel(); close(x.done) }()
	if l.left(x) { // it waits for the next start
		return
	}
	var r report
	err := l.begin(x)
	if err == nil {
		r, err = l.ask(x)
	}
	if errors.Is(err, context.Canceled) && l.left(x) {
		if err := l.cfg.Store.PutBack(x.ID); err != nil {
			l.cfg.Log.Error("left running", zap.Int64("result", x.ID), zap.Error(err))
		}
		return
	}
	if r.Files == nil { // it has not come so far
		r.Files, _ = written(results.Table{}, nil, Summary{Seed: x.Seed, Config: x.Config})
	}
	state, why := journal.Failed, ""
	switch {
	case err == nil:
		state = journal.Done
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("it took longer than %v", l.cfg.Longest)
	case errors.Is(err, context.Canceled):
		state = journal.Cancelled
	default:
		why = err.Error()
	}
	if err := l.cfg.Store.EndRun(x.ID, state, why, time.Now(), r.Files); err != nil {
		l.cfg.Log.Error("results not kept", zap.Int64("result", x.ID), zap.Error(err))
	}
	l.cfg.Log.Info("experiment ended", zap.Int64("result", x.ID), zap.String("name", x.Name),
		zap.String("state", string(state)), zap.String("error", why))
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, x.ID)
}

// left tells whether a run is left to the next start: the lab is closed, and no client has
// cancelled the run. It cannot be cancelled from then on.
func (l *Lab) left(x *run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.withdrawn || l.ctx.Err() == nil {
		return false
	}
	delete(l.active, x.ID)
	return true
}

// begin writes down that a run begins; its time counts from now on.
func (l *Lab) begin(x *run) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	stop := x.cancel
	ctx, cancel := context.WithTimeout(x.ctx, l.cfg.Longest)
	l.mu.Lock()
	x.ctx, x.cancel = ctx, func() { cancel(); stop() }
	l.mu.Unlock()
	return l.cfg.Store.BeginRun(x.ID)
}

// ConfigError says which field of a Config cannot be as it was asked for.
type ConfigError struct {
	Field string // its key
	Err   error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("config.%s: %v", e.Field, e.Err) }

// Unwrap is the error about the value.
func (e *ConfigError) Unwrap() error { return e.Err }

// Limits of one request. The time that it may take has a limit besides.
const (
	maxValues = 64        // in a list
	maxText   = 4096      // bytes of a field
	maxNumber = 1_000_000 // of functions, records and other things that take memory each
)

// configure sets fields to texts, and returns those that were set, as they can be set
// again. Fields that name files are refused: they would be files of the server.
func configure(r *experiments.Request, config choice.Choices) (map[string]string, error) {
	set := map[string]string{}
	for key, texts := range config {
		i := slices.IndexFunc(r.Fields, func(f *choice.Field) bool { return f.Key() == key })
		if i < 0 {
			keys := spelling.Each(r.Fields, (*choice.Field).Key)
			return nil, &ConfigError{key, fmt.Errorf("the experiment has no such field%s", spelling.Hint(key, keys))}
		}
		f := r.Fields[i]
		err := bounded(f, texts)
		if err == nil {
			err = f.SetAll(texts)
		}
		if err != nil {
			return nil, &ConfigError{key, err}
		}
		set[key] = f.String()
	}
	return set, nil
}

// bounded refuses files of the server, and what would take all of its memory.
func bounded(f *choice.Field, texts []string) error {
	text := strings.Join(texts, ",")
	switch {
	case len(text) > maxText:
		return fmt.Errorf("%d characters: want %d at most", len(text), maxText)
	case strings.Count(text, ",") >= maxValues:
		return fmt.Errorf("want %d values at most", maxValues)
	case f.IsFile(text) || slices.ContainsFunc(texts, f.IsFile):
		return errors.New("a file of the server cannot be named")
	}
	generated := strings.Contains(text, "gen:")
	for part := range strings.SplitSeq(text, ",") {
		number := strings.TrimPrefix(strings.TrimPrefix(part, "gen:"), "n=")
		if n, err := strconv.ParseFloat(number, 64); err == nil && n > maxNumber && (generated || f.Type == "list") {
			return fmt.Errorf("%.100q: want %d at most", part, maxNumber)
		}
	}
	return nil
}
