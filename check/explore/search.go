// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/cpus"
)

// Options say how a model is explored.
type Options struct {
	Reduce  Reductions
	Exact   bool // keep whole states instead of fingerprints
	Workers int  // 0: one for each core

	// Liveness also asks whether every update can end, and every CPU can come back; see
	// Liveness. The question comes after a search that has found nothing broken.
	Liveness bool

	// Limits; 0 for none. States are counted at the end of a level, so that a
	// search that is cut there is the same every time.
	LimitStates uint64
	LimitTime   time.Duration
	LimitMemory uint64 // bytes of states and of the queue

	// Checkpoint is a file that the search is saved in when it is cut short,
	// and every so often; "" for none. Resume goes on from there.
	Checkpoint string
	Every      time.Duration
	Resume     bool

	// Watch, where set, is told how far the search has got, now and then.
	Watch func(Progress)
}

// over says which limit is reached; "" for none.
func (o *Options) over(states, memory uint64, took time.Duration) string {
	switch {
	case o.LimitStates > 0 && states >= o.LimitStates:
		return fmt.Sprintf("the limit of %d states is reached", o.LimitStates)
	case o.LimitMemory > 0 && memory >= o.LimitMemory:
		return fmt.Sprintf("the limit of %d MiB is reached", o.LimitMemory>>20)
	case o.LimitTime > 0 && took >= o.LimitTime:
		return fmt.Sprintf("the limit of %v is reached", o.LimitTime)
	}
	return ""
}

// Progress is how far a search has got.
type Progress struct {
	States, Transitions uint64
	Depth               int
	Queue               uint64 // states of this level that are still to be looked at
	Memory              uint64 // bytes
	Elapsed             time.Duration
}

// String is one line for people who wait.
func (p Progress) String() string {
	return fmt.Sprintf("%.1f M states, %.2f M/s, depth %d, queue %d, %d MiB",
		float64(p.States)/1e6, float64(p.States)/1e6/p.Elapsed.Seconds(), p.Depth, p.Queue, p.Memory>>20)
}

// Verdict is the answer.
type Verdict string

// The verdicts.
const (
	Safe       Verdict = "safe"       // nothing can break, in any interleaving
	Unsafe     Verdict = "unsafe"     // something can; there is a trace
	Incomplete Verdict = "incomplete" // cut short: nothing is known about the rest
)

// Result is what a search has found.
type Result struct {
	Verdict     Verdict
	Violation   *cpus.Violation // when Unsafe
	Trace       *Trace          // when Unsafe; nil where it could not be made
	Depth       int             // of the violation, or of the deepest state
	States      uint64
	Transitions uint64
	Elapsed     time.Duration
	Memory      uint64  // bytes at the most
	Collision   float64 // probability that a state was taken for another; see Exact
	Cut         string  // why Incomplete
	Coverage    Coverage
}

// Explore looks at every state that the model can reach, level by level. An error
// means that the search could not be made at all, or that ctx ended and nothing
// was known by then; a limit that is hit is a Result.
func Explore(ctx context.Context, m *Model, o Options) (*Result, error) {
	s, err := newSearch(m, o)
	if err != nil {
		return nil, err
	}
	r, err := s.run(ctx)
	switch {
	case err != nil:
		return r, err
	case r.Verdict == Safe && o.Liveness:
		return alsoLives(ctx, m, o, r)
	case r.Verdict != Unsafe:
		return r, nil
	}
	// Which way there is the first in order does not depend on the number of
	// cores when one of them looks again.
	return r, s.findTrace(ctx, r)
}

// search is one search under way.
type search struct {
	m       *Model
	o       Options
	seen    visited
	workers []*worker
	queue   []slab // states of this level that are still to be looked at
	next    []slab // those of the next one, so far
	start   time.Time
	spent   time.Duration // before this search was resumed
	before  reached       // likewise

	depth       atomic.Int64
	states      atomic.Uint64
	transitions atomic.Uint64
	queued      atomic.Int64                   // states of this level that are still to be looked at
	queueBytes  atomic.Uint64                  // of this level and the next
	broken      atomic.Bool                    // a violation was found on this level
	worst       atomic.Pointer[cpus.Violation] // the first of them by property, CPU and site
	halt        atomic.Pointer[string]
	peak        atomic.Uint64
	lastSave    time.Time
}

// slab is some states' words, one behind the other.
type slab []uint64

// slabStates is how many states a slab holds: a worker takes one at a time.
const slabStates = 64

func newSearch(m *Model, o Options) (*search, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	s := &search{m: m, o: o, seen: &prints{}, start: time.Now(), lastSave: time.Now()}
	if o.Exact {
		s.seen = &exact{}
	}
	if o.Resume {
		return s, s.load()
	}
	if err := s.canSave(); err != nil {
		return nil, err
	}
	first := newExpander(m, o.Reduce).initial()
	s.seen.insert(fingerprint(first), first)
	s.states.Store(1)
	s.queue = []slab{first}
	return s, nil
}

// run goes from level to level.
func (s *search) run(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	for {
		s.level()
		if why := s.halt.Load(); why != nil {
			return s.cut(*why)
		}
		if s.broken.Load() {
			r := s.result(Unsafe)
			r.Depth++
			return r, nil
		}
		if !s.deeper() {
			break
		}
		if why := s.o.over(s.states.Load(), 0, 0); why != "" {
			return s.cut(why)
		}
		if time.Since(s.lastSave) >= s.o.Every {
			if err := s.save(); err != nil {
				return nil, err
			}
		}
	}
	return s.result(Safe), nil
}

// deeper goes on to the next level, if there is one.
func (s *search) deeper() bool {
	if s.next == nil {
		return false
	}
	s.queue, s.next = s.next, nil
	s.depth.Add(1)
	return true
}

// level looks at every state of the queue, unless it is halted: then some slabs are
// left, each whole.
func (s *search) level() {
	s.queued.Store(int64(s.count(s.queue)))
	s.queueBytes.Store(uint64(s.queued.Load()) * uint64(8*s.m.layout.words))
	var (
		taken atomic.Int64
		wait  sync.WaitGroup
		mu    sync.Mutex
	)
	for len(s.workers) < min(s.o.Workers, len(s.queue)) {
		s.workers = append(s.workers, newWorker(s))
	}
	for _, w := range s.workers[:min(s.o.Workers, len(s.queue))] {
		wait.Go(func() {
			for s.halt.Load() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(s.queue) {
					break
				}
				w.slab(s.queue[i])
				w.free = append(w.free, s.queue[i][:0])
				s.queue[i] = nil
			}
			w.flush()
			mu.Lock()
			s.next = append(s.next, w.out...)
			w.out = nil
			mu.Unlock()
		})
	}
	wait.Wait()
	s.queue = slices.DeleteFunc(s.queue, func(b slab) bool { return b == nil })
}

func (s *search) count(q []slab) (n int) {
	for _, b := range q {
		n += len(b) / s.m.layout.words
	}
	return n
}

// watch enforces the limits of time and memory, and reports.
func (s *search) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			s.stop("it was interrupted") // only matters when the search still runs
			return
		case <-tick.C:
		}
		p := s.progress()
		if why := s.o.over(0, p.Memory, p.Elapsed); why != "" {
			s.stop(why)
		}
		if s.o.Watch != nil && n%5 == 4 {
			s.o.Watch(p)
		}
	}
}

func (s *search) stop(why string) { s.halt.CompareAndSwap(nil, &why) }

func (s *search) progress() Progress {
	memory := s.seen.bytes() + s.queueBytes.Load()
	for peak := s.peak.Load(); memory > peak && !s.peak.CompareAndSwap(peak, memory); peak = s.peak.Load() {
	}
	return Progress{
		States: s.states.Load(), Transitions: s.transitions.Load(), Depth: int(s.depth.Load()),
		Queue: uint64(max(s.queued.Load(), 0)), Memory: memory, Elapsed: s.spent + time.Since(s.start),
	}
}

// cut ends a search that is not complete.
func (s *search) cut(why string) (*Result, error) {
	r := s.result(Incomplete)
	r.Cut = why
	if s.broken.Load() { // found all the same, if not surely the shortest
		r.Verdict, r.Cut, r.Violation = Unsafe, "", s.worst.Load()
		r.Depth++
		return r, nil
	}
	return r, s.save()
}

func (s *search) result(v Verdict) *Result {
	p := s.progress()
	r := &Result{
		Verdict: v, Depth: int(s.depth.Load()), States: p.States, Transitions: p.Transitions,
		Elapsed: p.Elapsed, Memory: s.peak.Load(), Coverage: s.m.coverage(s.reached()),
	}
	if v == Unsafe {
		r.Violation = s.worst.Load()
	}
	if !s.o.Exact {
		r.Collision = collision(p.States)
	}
	return r
}

// errNoTrace says that the second search did not get to the violation that the first has found.
var errNoTrace = errors.New("the violation was not found again")

// found notes a violation. Which of a level's is kept does not depend on who finds
// it first.
func (s *search) found(v *cpus.Violation) {
	for {
		old := s.worst.Load()
		if old != nil && compareViolations(old, v) <= 0 || s.worst.CompareAndSwap(old, v) {
			break
		}
	}
	s.broken.Store(true)
}

func compareViolations(a, b *cpus.Violation) int {
	return cmp.Or(cmp.Compare(a.Property, b.Property), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Site, b.Site),
		cmp.Compare(a.Why, b.Why))
}
