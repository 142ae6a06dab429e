// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"slices"
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
	c.held.tickets = nil
	if len(all) == 0 {
		return nil
	}
	byDeadline(all)
	n, until := c.cfg.Admit(at, all, func(n int) []Change { return c.together(all[:n]) })
	admitted, waits := slices.Clone(all[:n]), map[string]bool{}
	for _, t := range all[n:] {
		behind := slices.ContainsFunc(t.requests, func(r Request) bool { return waits[r.Client] })
		if !behind && len(c.together([]*Ticket{t})) == 0 { // it switches nothing
			admitted = append(admitted, t)
			continue
		}
		c.held.tickets, c.held.until = append(c.held.tickets, t), until
		for _, r := range t.requests {
			waits[r.Client] = true
		}
	}
	if len(c.held.tickets) > 0 {
		c.cfg.Listener.Held(c.held.tickets, until)
	}
	return admitted
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
