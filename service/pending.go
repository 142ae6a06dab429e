package service

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/sched"
)

// pending is an update on its way.
type pending struct {
	update atomic.Pointer[Update] // as it is now; each is written once
	which  []int
	ticket chan *sched.Ticket // holds one once the coordinator has it
	done   chan struct{}      // closed when its end is in the journal
	left   chan struct{}      // closed when it is left for the next start

	leaving sync.Once
}

func newPending(u Update, which []int) *pending {
	p := &pending{which: which, ticket: make(chan *sched.Ticket, 1), done: make(chan struct{}), left: make(chan struct{})}
	p.update.Store(&u)
	return p
}

func (p *pending) snapshot() Update { return *p.update.Load() }

// change replaces what is told of it. Who changes it: whoever took its ticket.
func (p *pending) change(f func(u *Update)) {
	u := p.snapshot()
	f(&u)
	p.update.Store(&u)
}

// leave ends the waiting for it.
func (p *pending) leave() { p.leaving.Do(func() { close(p.left) }) }

// pending is what is on its way, in the order of acceptance.
func (s *Service) pending() []*pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*pending
	for _, p := range s.open {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pending) int { return int(a.update.Load().ID - b.update.Load().ID) })
	return out
}

// owner is who sched's requests are of: a client with one of its ops.
func owner(client, ops string) string { return client + "\x00" + ops }
