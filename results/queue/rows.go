// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results/points"
)

// Rows is a run under way, as its submitter has it.
type Rows struct {
	q    *Queue
	run  Run
	id   string
	keys []string

	consume jetstream.ConsumeContext
	beats   *nats.Subscription
	life    context.Context // until Close
	stop    context.CancelFunc
	tending sync.WaitGroup
	mark    string // of this submission

	mu      sync.Mutex
	known   []bool          // by point: it has come
	waiting map[int]outcome // for Await, which takes each once
	changed chan struct{}   // closed when one comes
	last    time.Time       // when one came
	found   int             // that were there from before
	slowest Slow
	workers workers
	failed  []int // points without a row
}

// Submission is a sweep.
type Submission struct {
	Request choice.Request
	Keys    []string         // a point each
	Inputs  []string         // files that are read
	Done    func(n int) bool // points whose rows are known already; nil for none
}

// Submit publishes the points that have no row yet.
func (q *Queue) Submit(ctx context.Context, s Submission) (*Rows, error) {
	r := &Rows{q: q, keys: s.Keys, mark: nuid.Next(), known: make([]bool, len(s.Keys)), waiting: map[int]outcome{},
		changed: make(chan struct{}), last: time.Now(),
		workers: workers{map[string]beat{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}}
	for n := range s.Keys {
		r.known[n] = s.Done != nil && s.Done(n)
	}
	r.run = Run{Program: q.Program, Request: s.Request, Inputs: map[string]string{}, Points: len(s.Keys)}
	sum := sha256.New()
	for _, key := range s.Keys {
		fmt.Fprintf(sum, "%q\n", key)
	}
	r.run.Keys = hex.EncodeToString(sum.Sum(nil))
	for _, name := range s.Inputs {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		r.run.Inputs[name] = hex.EncodeToString(sum[:])
	}
	r.id = r.run.id()
	if err := r.begin(ctx); err != nil {
		r.Close()
		return nil, fmt.Errorf("queue: %w", err)
	}
	return r, nil
}

// begin puts everything into the queue that it does not have.
func (r *Rows) begin(ctx context.Context) error {
	if err := r.putFiles(ctx); err != nil {
		return err
	}
	there, err := r.there(ctx)
	if err != nil {
		return err
	}
	var missing []int
	for i, known := range r.known {
		switch {
		case known:
		case there[i]:
			r.found++
		default:
			missing = append(missing, i)
		}
	}
	r.life, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.listen(ctx); err != nil {
		return err
	}
	if err := r.publish(ctx, missing); err != nil {
		return err
	}
	r.tending.Go(r.tend)
	return nil
}

// putFiles puts the run's description and its files where workers find them.
func (r *Rows) putFiles(ctx context.Context) error {
	about, err := json.Marshal(r.run)
	if err != nil {
		return err
	}
	put := func(what string, text []byte) error {
		return r.q.persist(ctx, func(ctx context.Context) error {
			_, err := r.q.files.PutBytes(ctx, objectName(r.id, what), text)
			return err
		})
	}
	for _, name := range slices.Sorted(maps.Keys(r.run.Inputs)) {
		text, err := os.ReadFile(name)
		if err == nil {
			err = put(r.run.Inputs[name], text)
		}
		if err != nil {
			return err
		}
	}
	return put("about", about) // last: who finds it finds the files
}

// there is which points have a row.
func (r *Rows) there(ctx context.Context) (map[int]bool, error) {
	there := map[int]bool{}
	err := r.q.persist(ctx, func(ctx context.Context) error {
		info, err := r.q.rows.Info(ctx, jetstream.WithSubjectFilter(rowSubjects(r.id)))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			if n, ok := r.point(subject); ok {
				there[n] = true
			}
		}
		return nil
	})
	return there, err
}

// point is the number at the end of a subject.
func (r *Rows) point(subject string) (int, bool) {
	n, err := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+1:])
	return n, err == nil && n >= 0 && n < len(r.keys)
}

// listen takes rows as they come, and those that are there.
func (r *Rows) listen(ctx context.Context) error {
	var err error
	if r.beats, err = r.q.nc.Subscribe("textpoke.worker.*", func(m *nats.Msg) { r.hear(m) }); err != nil {
		return err
	}
	var consumer jetstream.Consumer
	err = r.q.persist(ctx, func(ctx context.Context) (err error) {
		consumer, err = r.q.js.OrderedConsumer(ctx, rowsStream, jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{rowSubjects(r.id)}, DeliverPolicy: jetstream.DeliverAllPolicy,
		})
		return err
	})
	if err != nil {
		return err
	}
	r.consume, err = consumer.Consume(func(m jetstream.Msg) { r.take(m.Subject(), m.Data()) },
		jetstream.ConsumeErrHandler(func(jetstream.ConsumeContext, error) {})) // tend looks for missing rows
	return err
}

// take takes a row.
func (r *Rows) take(subject string, data []byte) {
	n, ok := r.point(subject)
	if !ok {
		return
	}
	var o outcome
	if err := json.Unmarshal(data, &o); err != nil {
		o = outcome{Mark: r.mark, Lost: fmt.Sprintf("what a worker has sent cannot be read: %v", err)}
	} else if o.Key != r.keys[n] {
		o.Mark, o.Lost = r.mark, fmt.Sprintf("worker %s has done %q", o.Worker, o.Key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Lost != "" && o.Mark != r.mark { // as it went when the run was submitted before
		if r.life.Err() == nil {
			r.tending.Go(func() { r.again(n) })
		}
		return
	}
	r.last = time.Now()
	if r.known[n] {
		return
	}
	r.known[n], r.waiting[n] = true, o
	if o.Lost != "" {
		r.failed = append(r.failed, n)
	}
	if o.Worker != "" {
		r.workers.seen[o.Worker] = true
	}
	if took := time.Duration(o.Nanos); took > r.slowest.Took {
		r.slowest = Slow{Key: o.Key, Worker: o.Worker, Took: took}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// Await waits for a point's row, once. The error is a *[points.LostError] if the point is lost.
func (r *Rows) Await(ctx context.Context, n int) ([]byte, error) {
	for {
		r.mu.Lock()
		o, ok := r.waiting[n]
		delete(r.waiting, n)
		changed := r.changed
		r.mu.Unlock()
		if ok {
			return r.data(ctx, o)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// data is that of an outcome, wherever it is.
func (r *Rows) data(ctx context.Context, o outcome) (data []byte, err error) {
	switch {
	case o.Lost != "":
		return nil, &points.LostError{Key: o.Key, Why: o.Lost}
	case o.Object == "":
		return o.Data, nil
	}
	err = r.q.persist(ctx, func(ctx context.Context) error {
		data, err = r.q.files.GetBytes(ctx, o.Object)
		return err
	})
	return data, err
}

// Finish removes everything about the run from the queue: its rows are where they belong.
func (r *Rows) Finish(ctx context.Context) error {
	return r.end(ctx, rowSubjects(r.id), true)
}

// Leave takes the jobs back that no worker has begun. The rows stay: the same sweep finds them
// when it is submitted again, those of points that failed excepted.
func (r *Rows) Leave(ctx context.Context) error {
	var err error
	r.mu.Lock()
	failed := slices.Clone(r.failed)
	r.mu.Unlock()
	for _, n := range failed {
		err = errors.Join(err, r.end(ctx, rowSubject(r.id, n), false))
	}
	return errors.Join(err, r.end(ctx, "", false))
}

// end removes the jobs, some rows, and where all is done, the files.
func (r *Rows) end(ctx context.Context, rows string, files bool) error {
	err := r.q.persist(ctx, func(ctx context.Context) error {
		jobs := "textpoke.job." + token(r.run.Program) + "." + r.id + ".*"
		if err := r.q.jobs.Purge(ctx, jetstream.WithPurgeSubject(jobs)); err != nil {
			return err
		}
		if rows == "" {
			return nil
		}
		return r.q.rows.Purge(ctx, jetstream.WithPurgeSubject(rows))
	})
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if err := r.q.nc.Publish(overSubject(r.id), nil); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if files {
		err = r.removeFiles(ctx)
	}
	return errors.Join(err, r.q.nc.FlushTimeout(patience))
}

// removeFiles removes the run's files, and rows that were as large.
func (r *Rows) removeFiles(ctx context.Context) error {
	return r.q.persist(ctx, func(ctx context.Context) error {
		all, err := r.q.files.List(ctx)
		if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
			return err
		}
		for _, o := range all {
			if strings.HasPrefix(o.Name, objectName(r.id, "")) {
				if err := r.q.files.Delete(ctx, o.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
					return err
				}
			}
		}
		return nil
	})
}

// Close ends listening.
func (r *Rows) Close() {
	if r.consume != nil {
		r.consume.Stop()
		<-r.consume.Closed()
	}
	if r.stop != nil {
		r.mu.Lock() // a row may still be on its way through take
		r.stop()
		r.mu.Unlock()
	}
	r.tending.Wait()
	if r.beats != nil {
		_ = r.beats.Unsubscribe() // the connection is about to be closed
	}
}
