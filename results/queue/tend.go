// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/internal/spelling"
)

// again lets a point be done that came to nothing when the run was submitted before.
func (r *Rows) again(n int) {
	err := r.q.persist(r.life, func(ctx context.Context) error {
		return r.q.rows.Purge(ctx, jetstream.WithPurgeSubject(rowSubject(r.id, n)))
	})
	if err == nil {
		_ = r.publishOne(r.life, n) // otherwise tend does
	}
}

// tend looks for missing rows whenever no message has come for a while: rows that it was not
// told of, and rows of lost jobs.
func (r *Rows) tend() {
	ctx := r.life
	for sleep(ctx, r.q.AckWait) == nil {
		r.mu.Lock()
		quiet := time.Since(r.last) >= r.q.AckWait
		missing := spelling.Where(spelling.Numbers(len(r.known)), func(n int) bool { return !r.known[n] })
		r.mu.Unlock()
		if !quiet || len(missing) == 0 {
			continue
		}
		there, err := r.there(ctx)
		if err != nil {
			continue // the servers cannot be reached
		}
		var lost []int
		for _, n := range missing {
			if !there[n] {
				lost = append(lost, n)
			} else if m, err := r.q.rows.GetLastMsgForSubject(ctx, rowSubject(r.id, n)); err == nil {
				r.take(m.Subject, m.Data)
			}
		}
		_ = r.publish(ctx, lost) // jobs that are in the queue are not published twice
	}
}

// window is how many messages wait for a server's answer, at most.
const window = 64

// publish publishes points, in their order but for a few, until all are in the queue.
func (r *Rows) publish(ctx context.Context, points []int) error {
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(window)
	for _, n := range points {
		group.Go(func() error { return r.publishOne(each, n) })
	}
	return group.Wait()
}

func (r *Rows) publishOne(ctx context.Context, n int) error {
	text, err := json.Marshal(job{r.id, n, r.keys[n], r.mark})
	if err != nil {
		return err
	}
	for {
		_, err := r.q.js.Publish(ctx, fmt.Sprintf("textpoke.job.%s.%s.%d", token(r.run.Program), r.id, n), text)
		switch {
		case err == nil || refused(err): // it is there
			return nil
		case errors.Is(err, nats.ErrMaxPayload):
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}
