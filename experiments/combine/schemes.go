// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// scheme is a way to carry out the updates of several clients.
type scheme struct {
	Name       string
	discipline func(*run) discipline
}

// schemes are all ways; the first is what the kernel does, and all others are measured by it.
var schemes = []scheme{
	{"mutex", func(r *run) discipline {
		return &line{run: r, most: 1}
	}},
	{"combine", func(r *run) discipline {
		return &line{run: r, most: len(r.pauses)}
	}},
	{"linger", func(r *run) discipline {
		return &line{run: r, most: len(r.pauses), linger: 1}
	}},
	{"share", func(r *run) discipline {
		return &sharing{run: r, phase: make([]int, len(r.pauses))}
	}},
}

// line is a mutex, and the clients that wait for it.
type line struct {
	*run
	most    int   // clients that are carried out together
	linger  nanos // times what the last batch took, how long the next one waits for as many
	waiting []int
	carried []int // of the batch under way; none: the mutex is free

	began, until nanos // when the last batch began; until when the next one may wait
	expected     int   // clients
}

func (l *line) on(e event) {
	switch e.kind {
	case asks:
		l.waiting = append(l.waiting, e.client)
	case roundsEnd:
		l.expected = len(l.carried) + len(l.waiting)
		for _, client := range l.carried {
			l.done(client)
		}
		l.carried = nil
		if took := l.now - l.began; l.linger > 0 {
			l.until = l.now + l.linger*took
			l.in(l.linger*took, lingered, 0)
		}
	}
	l.begin()
}

// begin takes the mutex, if it is free, clients wait for it, and these linger no more.
func (l *line) begin() {
	if len(l.carried) > 0 || len(l.waiting) == 0 || len(l.waiting) < l.expected && l.now < l.until {
		return
	}
	n := min(len(l.waiting), l.most)
	l.carried, l.waiting = l.waiting[:n:n], l.waiting[n:]
	b := l.batches[n]
	l.Rounds += len(b)
	l.began = l.now
	l.in(b.takes(l.round), roundsEnd, 0)
}

// sharing is updates that go on beside each other: stores to text one after the other,
// each followed by a wait for a round that began after them. That is how tasks wait for
// expedited grace periods: rcu_exp_gp_seq_snap, exp_funnel_lock and sync_exp_work_done,
// kernel/rcu/tree_exp.h, Linux 6.12. There is one round at a time.
type sharing struct {
	*run
	phase  []int // of each client's update
	free   nanos // when the stores end that were asked for so far
	stored []int // clients that need a round that begins from now on
	served []int // by the round under way; none: there is none
}

func (s *sharing) on(e event) {
	switch e.kind {
	case asks:
		s.phase[e.client] = 0
		s.store(e.client)
	case storesEnd:
		s.stored = append(s.stored, e.client)
	case roundsEnd:
		served := s.served
		s.served = nil
		for _, client := range served {
			if s.phase[client]++; s.phase[client] < len(s.batches[1]) {
				s.store(client)
			} else {
				s.done(client)
			}
		}
	}
	s.begin()
}

// store has a client store what is next in its update, after those before it.
func (s *sharing) store(client int) {
	s.free = max(s.free, s.now) + s.batches[1][s.phase[client]]
	s.in(s.free-s.now, storesEnd, client)
}

// begin sends a round for all that wait, unless one is under way.
func (s *sharing) begin() {
	if len(s.served) > 0 || len(s.stored) == 0 {
		return
	}
	s.Rounds++
	s.served, s.stored = s.stored, nil
	s.in(s.round, roundsEnd, 0)
}

// kind is what happens. At one instant stores end first, so that a round that begins
// then serves them; then rounds; then clients ask, so that a client that was just served
// comes too late for a batch that begins at once.
type kind uint8

const (
	storesEnd kind = iota // of one client's phase
	roundsEnd             // of a batch, or the one that is shared
	asks                  // a client, for its next update
	lingered              // long enough
)

type event struct {
	at     nanos
	kind   kind
	client int
}

// later orders events by their times, kinds and clients, the last one first.
func later(a, b event) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.kind, a.kind), cmp.Compare(b.client, a.client))
}

// outcome is what all updates came to.
type outcome struct {
	Updates   int
	Rounds    int
	Contended int   // updates that somebody else had one under way for when they were asked for
	latency   nanos // from asking until done, all together
}

// run is clients that pause and ask for an update by turns.
type run struct {
	outcome
	now     nanos
	round   nanos // how long one takes
	batches []batch
	events  []event   // to come, the next one behind all others: each client has a few
	pauses  [][]nanos // of each client, those that are left
	asked   []nanos   // when each client asked
	active  int       // clients that have asked
}

// discipline is who is carried out when.
type discipline interface{ on(event) }

// simulate has every client ask until it has no pause left, each followed by an update.
func simulate(s scheme, round nanos, batches []batch, pauses [][]nanos) outcome {
	r := &run{round: round, batches: batches, pauses: make([][]nanos, len(pauses)), asked: make([]nanos, len(pauses))}
	copy(r.pauses, pauses)
	d := s.discipline(r)
	for client := range pauses {
		r.rest(client)
	}
	for last := len(r.events) - 1; last >= 0; last = len(r.events) - 1 {
		e := r.events[last]
		r.events, r.now = r.events[:last], e.at
		if e.kind == asks {
			r.asked[e.client] = r.now
			if r.active > 0 {
				r.Contended++
			}
			r.active++
		}
		d.on(e)
	}
	return r.outcome
}

// in has something happen so much later.
func (r *run) in(wait nanos, k kind, client int) {
	e := event{at: r.now + wait, kind: k, client: client}
	i, _ := slices.BinarySearchFunc(r.events, e, later)
	r.events = slices.Insert(r.events, i, e)
}

// rest has a client pause, and then ask.
func (r *run) rest(client int) {
	if left := r.pauses[client]; len(left) > 0 {
		r.pauses[client] = left[1:]
		r.in(left[0], asks, client)
	}
}

// done answers a client.
func (r *run) done(client int) {
	r.Updates++
	r.active--
	r.latency += r.now - r.asked[client]
	r.rest(client)
}

// pauses draws so many of each client, exponentially distributed with that mean.
func pauses(seed uint64, clients, each int, mean float64) [][]nanos {
	rng := rand.New(rand.NewPCG(seed, uint64(clients)))
	out := make([][]nanos, clients)
	for i := range out {
		out[i] = make([]nanos, each)
		for j := range out[i] {
			out[i][j] = nanos(rng.ExpFloat64() * mean)
		}
	}
	return out
}
