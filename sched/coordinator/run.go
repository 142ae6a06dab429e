// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sort"
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

// waiting adds the tickets in the queue, and those that were handed in together with the
// tickets from the i-th on.
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

// company adds tickets until all that were handed in together are there. They may be more
// than the queue has room for.
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
	wait := c.last.at.Add(time.Duration(c.cfg.Linger * float64(c.last.took))).Sub(c.cfg.Now())
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

// update carries requests out together. When that fails each is tried by itself,
// so that one client's bad record does not cost the others theirs. An update that
// failed because it was cancelled is not tried again. The waiting clients are counted
// before any client is told: one that is told asks again, and must not count for itself.
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
		if want := c.wants.users[rec] > 0; want != (c.shown.users[rec] > 0) { // this goroutine alone changes it
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

// tell tells listeners and waiting clients how settled requests have ended.
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

// held is requests that wait until they may be carried out.
type held struct {
	tickets []*Ticket
	until   time.Time
}

// again is the longest time until those that are held are looked at again: clocks are set.
const again = time.Second

// first is the next request, or nil where it is time for those that are held.
func (c *Coordinator) first() (t *Ticket, open bool) {
	if len(c.held.tickets) == 0 {
		t, open = <-c.queue
		return t, open
	}
	due := time.NewTimer(min(c.held.until.Sub(c.cfg.Now()), again))
	defer due.Stop()
	select {
	case t, open = <-c.queue:
		return t, open
	case <-due.C:
		return nil, true
	}
}

// admit is those that may be carried out now, of these and of those that are held. The others are
// held.
func (c *Coordinator) admit(at time.Time, waiting []*Ticket) []*Ticket {
	all := slices.Concat(c.held.tickets, waiting)
	all = slices.DeleteFunc(all, func(t *Ticket) bool { return t.late(at) || t.state.Load() != queued })
	c.held = held{}
	if len(all) == 0 {
		return nil
	}
	byDeadline(all)
	for free := []*Ticket(nil); ; {
		n, until, alone := c.cfg.Admit(at, all, func(n int) []Change { return c.together(all[:n]) })
		later, others := all[n:], []*Ticket(nil)
		if alone {
			later, others = behind(all[n:])
		}
		free = append(free, c.hold(later, until)...)
		if all = slices.Concat(all[:n], others); !alone {
			return c.join(at, all, free)
		}
	}
}

// join adds those that are free and switch nothing with the others either: two that disable what both have enabled do.
// From the first that does on they are held, and looked at again at once.
func (c *Coordinator) join(at time.Time, admitted, free []*Ticket) []*Ticket {
	changes := c.together(admitted)
	n := sort.Search(len(free), func(i int) bool {
		return !slices.Equal(c.together(slices.Concat(admitted, free[:i+1])), changes)
	})
	if n < len(free) {
		c.held = held{slices.Concat(free[n:], c.held.tickets), at}
	}
	return slices.Concat(admitted, free[:n])
}

// behind is the first ticket with all behind it that have one of its clients, and the others.
func behind(ts []*Ticket) (later, others []*Ticket) {
	clients := map[string]bool{ts[0].requests[0].Client: true}
	for _, t := range ts {
		if !slices.ContainsFunc(t.requests, func(r Request) bool { return clients[r.Client] }) {
			others = append(others, t)
			continue
		}
		later = append(later, t)
		for _, r := range t.requests {
			clients[r.Client] = true
		}
	}
	return later, others
}

// hold holds tickets until a time, but for those that are free: they switch nothing.
func (c *Coordinator) hold(ts []*Ticket, until time.Time) (free []*Ticket) {
	waits := map[string]bool{}
	var wait []*Ticket
	for _, t := range ts {
		behind := slices.ContainsFunc(t.requests, func(r Request) bool { return waits[r.Client] })
		if !behind && len(c.together([]*Ticket{t})) == 0 {
			free = append(free, t)
			continue
		}
		wait = append(wait, t)
		for _, r := range t.requests {
			waits[r.Client] = true
		}
	}
	if len(wait) > 0 {
		c.held.tickets, c.held.until = append(c.held.tickets, wait...), sooner(until, c.held.until)
		c.cfg.Listener.Held(wait, until)
	}
	return free
}

// together is what requests would switch.
func (c *Coordinator) together(ts []*Ticket) []Change {
	us := c.wants.addAll(ts)
	defer c.wants.takeBack(us)
	return c.lacking(us)
}

// byDeadline orders requests by their deadlines, the earliest first, and those of one client as they came:
// one that comes before another of its client has the deadline of that one if it is earlier (Chetto, Silly
// and Bouchentouf, Dynamic scheduling of real-time tasks under precedence constraints, 1990).
func byDeadline(ts []*Ticket) {
	due, client := map[*Ticket]time.Time{}, map[string]time.Time{}
	for _, t := range slices.Backward(ts) {
		for _, r := range t.requests {
			client[r.Client] = sooner(t.deadline, client[r.Client])
			due[t] = sooner(due[t], client[r.Client])
		}
	}
	slices.SortStableFunc(ts, func(a, b *Ticket) int {
		switch x, y := due[a], due[b]; {
		case x.Equal(y):
			return 0
		case sooner(x, y).Equal(x):
			return -1
		}
		return 1
	})
}

// sooner is the earlier of two deadlines; the zero time is none.
func sooner(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
