// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"slices"
	"sort"
	"time"
)

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
		aside, others := all[n:], []*Ticket(nil)
		if alone {
			aside, others = behind(all[n:])
		}
		free = append(free, c.hold(aside, until)...)
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
func behind(ts []*Ticket) (aside, others []*Ticket) {
	clients := map[string]bool{ts[0].requests[0].Client: true}
	for _, t := range ts {
		if !slices.ContainsFunc(t.requests, func(r Request) bool { return clients[r.Client] }) {
			others = append(others, t)
			continue
		}
		aside = append(aside, t)
		for _, r := range t.requests {
			clients[r.Client] = true
		}
	}
	return aside, others
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
