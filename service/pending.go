// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
)

// pending is an update on its way.
type pending struct {
	now     atomic.Pointer[present]
	which   []int
	ticket  chan *coordinator.Ticket // holds one once the coordinator has it
	done    chan struct{}            // closed when its end is in the journal
	left    chan struct{}            // closed when it is left for the next start
	holding chan struct{}            // closed when it is held for the first time
	ends    bool                     // a lease, which is over

	leave, hold func() // end the waiting for it; for its end

	receipt *journal.Receipt // what its update of the text took; the coordinator's
	end     *Update          // how it ended, once that is in the journal; the coordinator's
}

// present is an update as it is now, and the name of the step that the text's
// update is through with, which all have in common that it carries out.
type present struct {
	Update
	phase *atomic.Pointer[string]
	alone bool // it is held for what is its client's alone
}

func newPending(u Update, which []int, ends bool) *pending {
	p := &pending{which: which, ends: ends, ticket: make(chan *coordinator.Ticket, 1), done: make(chan struct{}),
		left: make(chan struct{}), holding: make(chan struct{})}
	p.leave, p.hold = sync.OnceFunc(func() { close(p.left) }), sync.OnceFunc(func() { close(p.holding) })
	p.now.Store(&present{Update: u})
	return p
}

// update is the update as clients see it.
func (p *pending) update() Update {
	now := p.now.Load()
	u := now.Update
	if now.phase != nil {
		u.Phase = *now.phase.Load()
	}
	return u
}

// pending is what is on its way, in the order of acceptance.
func (s *Service) pending() []*pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*pending
	for _, p := range s.open {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pending) int { return int(a.now.Load().ID - b.now.Load().ID) })
	return out
}

// owner is who the coordinator's requests are of: a client with one of its ops.
func owner(client, ops string) string { return client + "\x00" + ops }
