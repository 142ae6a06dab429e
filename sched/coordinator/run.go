// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"fmt"
	"time"
)

func (c *Coordinator) run(ctx context.Context) {
	defer close(c.ended)
	defer context.AfterFunc(ctx, c.stop)()
	for first := range c.queue {
		if ts := c.gather(ctx, first); len(ts) > 0 { // all may have been withdrawn
			c.update(ctx, ts)
		}
	}
}

// gather takes up everything that waits by now.
func (c *Coordinator) gather(ctx context.Context, first *Ticket) []*Ticket {
	if c.cfg.Gather > 0 {
		select {
		case <-time.After(c.cfg.Gather):
		case <-c.closing:
		case <-ctx.Done():
		}
	}
	var all []*Ticket
	for t, more := first, len(c.queue); ; t, more = <-c.queue, more-1 {
		if t.take() {
			all = append(all, t)
		}
		if more == 0 {
			return all
		}
	}
}

// update carries requests out together. When that fails each is tried by itself,
// so that one client's bad record does not cost the others theirs. An update that
// failed because it was cancelled is not tried again.
func (c *Coordinator) update(ctx context.Context, ts []*Ticket) {
	us, err := c.try(ctx, ts)
	if err != nil && ctx.Err() == nil && len(ts) > 1 && c.broken.Load() == nil {
		c.cfg.Listener.split(len(ts), err)
		for _, t := range ts {
			c.update(ctx, []*Ticket{t})
		}
		return
	}
	c.answer(ts, us, err)
}

// try applies what requests change together, and tells what they changed. When it
// fails nothing is changed.
func (c *Coordinator) try(ctx context.Context, ts []*Ticket) ([]undo, error) {
	if ctx.Err() != nil {
		return nil, ErrClosed
	}
	if why := c.broken.Load(); why != nil {
		return nil, *why
	}
	c.cfg.Listener.began(ts)
	var us []undo
	for _, t := range ts {
		for _, r := range t.requests {
			us = append(us, c.wants.add(r))
		}
	}
	changes := c.lacking(us)
	if len(changes) == 0 {
		return us, nil
	}
	c.updates.Add(1)
	if err := c.cfg.Apply(ctx, changes); err != nil {
		c.failed.Add(1)
		c.wants.takeBack(us)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrClosed, err)
		}
		return nil, err
	}
	c.changes.Add(uint64(len(changes)))
	return us, nil
}

// lacking is what the text lacks of what is wanted, by record. Opposite wishes
// about one record have met in their number and left nothing to do.
func (c *Coordinator) lacking(us []undo) (out []Change) {
	all := c.wants.changed(us)
	if all == nil {
		return nil
	}
	for rec := range all.all() {
		if want := c.wants.users[rec] > 0; want != c.shown.live(rec) {
			out = append(out, Change{rec, want})
		}
	}
	return out
}

// answer ends requests that were taken: their end is committed, then snapshots show
// it, then listeners and those who wait are told.
func (c *Coordinator) answer(ts []*Ticket, us []undo, err error) {
	end := End{ts, err, c.wants}
	if end.Err = c.commit(end); end.Err == nil {
		c.shown.follow(c.wants, us)
	}
	c.cfg.Listener.ended(end)
	c.requests.Add(uint64(len(ts)))
	for _, t := range ts {
		t.err = end.Err
		close(t.done)
	}
}

// commit is how requests end, once that is durable.
func (c *Coordinator) commit(end End) error {
	if c.cfg.Commit == nil {
		return end.Err
	}
	if why := c.broken.Load(); why != nil {
		return *why
	}
	if err := c.cfg.Commit(end); err != nil {
		err = fmt.Errorf("%w: %w", ErrUncommitted, err)
		c.broken.CompareAndSwap(nil, &err)
		return err
	}
	return end.Err
}
