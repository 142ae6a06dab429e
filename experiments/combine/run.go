// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
)

// kind is what happens. At one instant stores end first, so that a round that begins
// then serves them; then rounds; then clients ask, so that whoever was just served
// comes too late for what begins at once.
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

// events come out in the order of their times, kinds and clients.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	a, b := e[i], e[j]
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.client, b.client)) < 0
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
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
	events  events
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
	for len(r.events) > 0 {
		e := heap.Pop(&r.events).(event)
		r.now = e.at
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
func (r *run) in(later nanos, k kind, client int) {
	heap.Push(&r.events, event{at: r.now + later, kind: k, client: client})
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
