// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// Worker does points that others have submitted.
type Worker struct {
	// Jobs is how many points are worked on at a time. Default: 1.
	Jobs int
	// Idle ends Work when there was nothing to do for so long. Default: never.
	Idle time.Duration
	// Time is how long a point may take, and Memory how many bytes the process may hold meanwhile,
	// with one point at a time then. A point that takes more is lost. Default: no limit.
	Time   time.Duration
	Memory uint64
	// Open makes a run's points ready to be done. files are where its inputs are, by name, until it returns.
	Open func(ctx context.Context, run Run, files map[string]string) (Points, error)
	// Log is told what people should know; may be nil.
	Log func(line string)
}

// Points does the points of one run. Its methods may be called from several goroutines.
type Points interface {
	// Key is what a point is, which must be what the queue calls it.
	Key(n int) (string, error)
	// Alone tells whether nothing may run beside a point.
	Alone() bool
	// Do is what a point comes to, as JSON. An error means that it did not come to anything:
	// it goes to another worker, or this one, later.
	Do(ctx context.Context, n int) ([]byte, error)
}

// session is a worker while it works: its runs, and the points that it does.
type session struct {
	*Queue
	Worker
	consumer jetstream.Consumer
	hands    *semaphore.Weighted // Jobs of them: a point has one, or all where nothing may be beside it

	mu      sync.Mutex
	runs    []*ready // the latest first
	busy    map[*begun]time.Time
	last    time.Time // when something was last done
	trouble trouble
	told    map[string]bool // lines
}

// Work does points until ctx ends, or there is nothing to do for as long as Idle. Points that
// it was at go back to the queue.
func (q *Queue) Work(ctx context.Context, w Worker) error {
	w.Jobs = max(w.Jobs, 1)
	if w.Log == nil {
		w.Log = func(string) {}
	}
	s := &session{Queue: q, Worker: w, hands: semaphore.NewWeighted(int64(w.Jobs)), busy: map[*begun]time.Time{},
		last: time.Now(), told: map[string]bool{}}
	for subject, hear := range map[string]nats.MsgHandler{
		overSubject("*"):       func(m *nats.Msg) { s.over(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]) },
		refusedSubject(q.Name): func(m *nats.Msg) { s.log(string(m.Data)) },
	} {
		heard, err := q.nc.Subscribe(subject, hear)
		if err != nil {
			return fmt.Errorf("queue: %w", err)
		}
		defer func() { _ = heard.Unsubscribe() }() // the connection is about to be closed
	}
	if err := s.consume(ctx); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beating sync.WaitGroup
	beating.Go(func() { s.beat(ctx) })
	s.take(ctx)
	cancel()
	beating.Wait()
	return nil
}

// consume finds the consumer that all workers of this program share, or makes it.
func (s *session) consume(ctx context.Context) error {
	return s.persist(ctx, func(ctx context.Context) (err error) {
		s.consumer, err = s.jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: "program-" + token(s.Program), Description: "textpoke " + s.Program,
			FilterSubject: "textpoke.job." + token(s.Program) + ".>", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: s.AckWait, MaxAckPending: 100_000, MaxWaiting: 10_000, InactiveThreshold: keep,
		})
		return err
	})
}

// next is the next message; nil where none came for a while.
func (s *session) next(ctx context.Context) jetstream.Msg {
	wait, cancel := context.WithTimeout(ctx, min(cmp.Or(s.Idle, 5*time.Second), 5*time.Second))
	defer cancel()
	m, err := s.consumer.Next(jetstream.FetchContext(wait))
	switch {
	case err == nil:
		return m
	case wait.Err() != nil || errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoMessages):
	case errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, nats.ErrNoResponders):
		// A server has lost it, or cannot be reached.
		if s.consume(ctx) != nil {
			_ = sleep(ctx, pause)
		}
	default:
		_ = sleep(ctx, pause)
	}
	return nil
}

// idle tells whether there was nothing to do for too long.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Idle > 0 && len(s.busy) == 0 && time.Since(s.last) >= s.Idle
}

// job does the point that a message names. It acknowledges the message once the row is there.
func (s *session) job(ctx context.Context, m jetstream.Msg, p *share) {
	var j job
	if err := json.Unmarshal(m.Data(), &j); err != nil {
		_ = m.TermWithReason(err.Error()) // it cannot be read
		return
	}
	about := &begun{Run: j.Run, Key: j.Key}
	s.mu.Lock()
	s.busy[about] = time.Now()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.busy, about)
		s.mu.Unlock()
	}()
	notice, stop := context.WithCancel(ctx)
	var noticing sync.WaitGroup
	noticing.Go(func() {
		for sleep(notice, s.AckWait/3) == nil {
			_ = m.InProgress() // unheard, it goes to another worker, too
		}
	})
	err := s.finish(ctx, m, &j, p)
	stop()
	noticing.Wait()
	switch {
	case err == nil:
		_ = m.Ack() // unheard, it comes again, and its row is there
	case errors.Is(err, errOver):
		_ = m.TermWithReason(err.Error())
	case ctx.Err() != nil || errors.Is(err, errCalledOff):
		_ = m.Nak() // it may have been submitted again meanwhile
		_ = s.nc.Flush()
	default:
		s.say(j.Run, err)
		_ = m.NakWithDelay(s.beatEvery())
	}
}

// errOver means that a run is over, errCalledOff that it was over a moment ago and may have
// been submitted again.
var (
	errOver      = errors.New("the run is over")
	errCalledOff = errors.New("the run was called off")
)

// finish does a point, and sees to it that its row is in the queue.
func (s *session) finish(ctx context.Context, m jetstream.Msg, j *job, p *share) error {
	tries := uint64(1)
	if info, err := m.Metadata(); err == nil {
		tries = info.NumDelivered
	}
	if tries > 1 {
		if _, err := s.rows.GetLastMsgForSubject(ctx, rowSubject(j.Run, j.Point)); err == nil {
			return nil // it was killed, or cut off, between the two
		}
	}
	if tries > uint64(s.Tries) { // before anything that may be the death of this worker, too
		return s.row(ctx, j, outcome{Lost: fmt.Sprintf("no worker came to an end with it: it was begun %d times", tries-1)})
	}
	// To open a run may be the death of this worker, and so may a point that has had half of its tries: nothing else is to
	// die with it.
	alone := tries > max(1, uint64(s.Tries)/2) || s.Memory > 0
	if err := p.set(ctx, s.needs(alone, s.opened(j.Run))); err != nil {
		return err
	}
	r, err := s.ready(ctx, j.Run)
	if err != nil {
		if tries >= uint64(s.Tries) {
			return s.row(ctx, j, outcome{Lost: fmt.Sprintf("begun %d times: %v", tries, err)})
		}
		return err
	}
	if key, err := r.points.Key(j.Point); err != nil || key != j.Key {
		return s.row(ctx, j, outcome{Lost: fmt.Sprintf("worker %s has %q there, %v", s.Name, key, err)})
	}
	if err := p.set(ctx, s.needs(alone, r)); err != nil {
		return err
	}
	start := time.Now()
	data, err := s.do(ctx, r, j.Point)
	if over := new(overError); errors.As(err, over) {
		return s.row(ctx, j, outcome{Lost: over.Error()})
	}
	if err != nil {
		if r.ctx.Err() != nil && ctx.Err() == nil {
			return errCalledOff
		}
		return err
	}
	return s.row(ctx, j, outcome{Data: data, Nanos: int64(time.Since(start))})
}

// do does a point.
func (s *session) do(ctx context.Context, r *ready, n int) ([]byte, error) {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(nil) })()
	defer s.limit(both, cancel)()
	data, err := r.points.Do(both, n)
	if over := new(overError); err != nil && errors.As(context.Cause(both), over) {
		err = *over
	}
	return data, err
}

// row publishes a point's outcome, until a server has it.
func (s *session) row(ctx context.Context, j *job, o outcome) error {
	o.Key, o.Mark, o.Worker = j.Key, j.Mark, s.Name
	if int64(len(o.Data)) > s.nc.MaxPayload()/2 {
		name := objectName(j.Run, fmt.Sprintf("row-%d", j.Point))
		if err := s.persist(ctx, func(ctx context.Context) error {
			_, err := s.files.PutBytes(ctx, name, o.Data)
			return err
		}); err != nil {
			return err
		}
		o.Data, o.Object = nil, name
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	for {
		_, err := s.js.Publish(ctx, rowSubject(j.Run, j.Point), text, jetstream.WithExpectLastSequencePerSubject(0))
		if err == nil || refused(err) {
			return nil
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// say tells people of trouble with a run, each kind once.
func (s *session) say(run string, err error) {
	s.mu.Lock()
	s.trouble = trouble{run, err.Error()}
	s.mu.Unlock()
	s.log(fmt.Sprintf("run %s: %v", run, err))
}

// log tells people a line, once.
func (s *session) log(line string) {
	s.mu.Lock()
	isNew := !s.told[line]
	s.told[line] = true
	s.mu.Unlock()
	if isNew {
		s.Log(line)
	}
}

// beat tells who listens that this worker is there.
func (s *session) beat(ctx context.Context) {
	for {
		s.tell(false)
		if sleep(ctx, s.beatEvery()) != nil {
			s.tell(true)
			return
		}
	}
}

func (s *session) tell(ends bool) {
	b := beat{Worker: s.Name, Program: s.Program, Ends: ends}
	s.mu.Lock()
	b.Trouble = s.trouble
	for p, since := range s.busy {
		b.Busy = append(b.Busy, begun{p.Run, p.Key, int64(time.Since(since))})
	}
	s.mu.Unlock()
	slices.SortFunc(b.Busy, func(a, b begun) int { return cmp.Compare(b.Nanos, a.Nanos) })
	if text, err := json.Marshal(b); err == nil {
		_ = s.nc.Publish("textpoke.worker."+token(s.Name), text) // nothing rests on it
	}
}

// overError is that a point takes more than it may.
type overError string

func (e overError) Error() string { return string(e) }

// lookEvery is the time between two looks at how much memory the process holds.
const lookEvery = 50 * time.Millisecond

// limit ends a point that takes more time or memory than it may, until stop is called.
func (s *session) limit(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	if s.Time > 0 {
		watching.Go(func() {
			if sleep(ctx, s.Time) == nil {
				end(overError(fmt.Sprintf("it took longer than %v", s.Time)))
			}
		})
	}
	if s.Memory > 0 {
		watching.Go(func() {
			for sleep(ctx, lookEvery) == nil {
				if held() > s.Memory {
					end(overError(fmt.Sprintf("it took more than %d MiB", s.Memory>>20)))
					return
				}
			}
		})
	}
	return func() { cancel(); watching.Wait() }
}

// held is how many bytes the process's objects take.
func held() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
