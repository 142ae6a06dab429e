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
	for {
		first, open := c.first()
		if !open {
			break
		}
		at, ts := c.takeUp(c.gather(ctx, first))
		if len(ts) == 0 { // all have been withdrawn, come too late, or are held
			continue
		}
		c.update(ctx, at, ts)
	}
	for _, t := range c.held.tickets {
		if t.take() {
			t.withdraw(ErrClosed)
		}
	}
}

// takeUp takes those that still wait, and may be carried out, all at one moment.
func (c *Coordinator) takeUp(waiting []*Ticket) (at time.Time, ts []*Ticket) {
	at = c.cfg.Now()
	if c.cfg.Admit != nil {
		waiting = c.admit(at, waiting)
	}
	for _, t := range waiting {
		if t.takeUp(at) {
			ts = append(ts, t)
		}
	}
	return at, ts
}

// gather waits for company, and is everything that waits by then.
func (c *Coordinator) gather(ctx context.Context, first *Ticket) []*Ticket {
	if first == nil { // it is time for those that are held
		return c.queued(nil)
	}
	all := []*Ticket{first}
	if c.cfg.Gather > 0 {
		select {
		case <-time.After(c.cfg.Gather):
		case <-c.closing:
		case <-ctx.Done():
		}
	}
	return c.linger(ctx, c.waiting(all, 0))
}

// waiting adds what is in the queue, and what was handed in together with the tickets from
// the i-th on.
func (c *Coordinator) waiting(all []*Ticket, i int) []*Ticket {
	all = c.queued(all)
	for ; i < len(all); i++ {
		if there := all[i].company; there != nil {
			all = c.company(all, there)
		}
	}
	return all
}

// queued adds the requests in the queue.
func (c *Coordinator) queued(all []*Ticket) []*Ticket {
	for range len(c.queue) {
		all = append(all, <-c.queue)
	}
	return all
}

// company adds what comes until all that were handed in together are there. They may be
// more than the queue has room for.
func (c *Coordinator) company(all []*Ticket, there <-chan struct{}) []*Ticket {
	for {
		select {
		case t, open := <-c.queue:
			if !open { // which it is only once they are there
				return all
			}
			all = append(all, t)
		case <-there:
			return c.queued(all)
		}
	}
}

// linger adds those that come until there are as many as are expected.
func (c *Coordinator) linger(ctx context.Context, all []*Ticket) []*Ticket {
	wait := c.last.until(c.cfg.Linger).Sub(c.cfg.Now())
	if wait <= 0 || len(all) >= c.last.expected {
		return all
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	for len(all) < min(c.last.expected, c.cfg.Queue) {
		select {
		case t, open := <-c.queue:
			if !open {
				return all
			}
			all = c.waiting(append(all, t), len(all))
		case <-enough.C:
			return all
		case <-c.closing:
			return all
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// last is what the updates so far let expect of the next one.
type last struct {
	at       time.Time     // when the last one ended
	took     time.Duration // running mean; see ended
	expected int           // requests: those that it carried, and those that waited at its end
}

// memory is how much of the mean the last update is: 1/8, as TCP smooths round trips
// (RFC 6298, 2.3).
const memory = 8

func (l *last) ended(from, to time.Time, carried, waiting int) {
	took := to.Sub(from)
	if l.at.IsZero() {
		l.took = took
	}
	l.took += (took - l.took) / memory
	l.at, l.expected = to, carried+waiting
}

// until is how long the next one waits.
func (l *last) until(times float64) time.Time {
	return l.at.Add(time.Duration(times * float64(l.took)))
}

// update carries requests out together. When that fails each is tried by itself,
// so that one client's bad record does not cost the others theirs. An update that
// failed because it was cancelled is not tried again. Who waits at its end is counted
// before anybody is told: who is told asks again, and is no company for itself.
func (c *Coordinator) update(ctx context.Context, at time.Time, ts []*Ticket) {
	begun := c.cfg.Now()
	us, err := c.try(ctx, at, ts)
	if err != nil && ctx.Err() == nil && len(ts) > 1 && c.broken.Load() == nil {
		c.cfg.Listener.Split(len(ts), err)
		for _, t := range ts {
			c.update(ctx, at, []*Ticket{t})
		}
		return
	}
	end := c.settle(ts, us, err)
	c.last.ended(begun, c.cfg.Now(), len(ts), len(c.queue))
	c.tell(end)
}

// try applies what requests change together, and tells what they changed. When it
// fails nothing is changed.
func (c *Coordinator) try(ctx context.Context, at time.Time, ts []*Ticket) ([]undo, error) {
	if ctx.Err() != nil {
		return nil, ErrClosed
	}
	if why := c.broken.Load(); why != nil {
		return nil, *why
	}
	c.cfg.Listener.Began(at, ts)
	us := c.wants.addAll(ts)
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

// lacking lists the records whose text differs from the clients' wishes. Opposite wishes about one
// record cancel each other and leave nothing to do.
func (c *Coordinator) lacking(us []undo) (out []Change) {
	for _, rec := range c.wants.changed(us) {
		if want := c.wants.users[rec] > 0; want != c.shown.live(rec) {
			out = append(out, Change{rec, want})
		}
	}
	return out
}

// settle ends requests that were taken: their end is committed, then snapshots show it.
func (c *Coordinator) settle(ts []*Ticket, us []undo, err error) End {
	end := End{ts, err, c.wants}
	if end.Err = c.commit(end); end.Err == nil {
		c.shown.follow(c.wants, us)
	}
	return end
}

// tell tells listeners and those who wait how requests that are settled have ended.
func (c *Coordinator) tell(end End) {
	c.cfg.Listener.Ended(end)
	c.requests.Add(uint64(len(end.Tickets)))
	for _, t := range end.Tickets {
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
