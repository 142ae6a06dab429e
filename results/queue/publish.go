// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

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
		_, err := r.q.js.Publish(ctx, jobSubject(r.run.Program, r.id, n), text)
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
