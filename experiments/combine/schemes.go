// SPDX-License-Identifier: Apache-2.0

package combine

// scheme is a way to carry out the updates of several clients.
type scheme struct {
	Name       string
	Does       string // in a few words
	discipline func(*run) discipline
}

// today is what the kernel does; all others are measured by it.
const today = "mutex"

var schemes = []scheme{
	{today, "each takes text_mutex and sends its own rounds", func(r *run) discipline {
		return &line{run: r, most: 1}
	}},
	{"combine", "whoever has the mutex carries out all that wait, in one batch", func(r *run) discipline {
		return &line{run: r, most: len(r.pauses)}
	}},
	{"linger", "the same, and it waits for those who were just served", func(r *run) discipline {
		return &line{run: r, most: len(r.pauses), linger: 1}
	}},
	{"share", "each stores by itself, and a round serves all whose stores it came after", func(r *run) discipline {
		return &sharing{run: r, phase: make([]int, len(r.pauses))}
	}},
}

// line is a mutex, and those who wait for it.
type line struct {
	*run
	most    int   // clients that are carried out together
	linger  nanos // times what the last batch took, how long the next one waits for as many
	waiting []int
	carried []int // of the batch under way; none: nobody has the mutex

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

// begin takes the mutex, if nobody has it and somebody waits for nobody else.
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
