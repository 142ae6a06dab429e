// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The slow twin: a clock that ticks, at each tick a look at every client, and for
// shared rounds the kernel's own sequence counter.

// doing is what a client does.
type doing uint8

const (
	pausing doing = iota
	waiting       // for its turn, or its stores
	storing
	stored // needs a round
	carried
	gone
)

type client struct {
	doing  doing
	until  nanos // pausing, storing
	since  nanos // of waiting, or stored
	rank   int   // among those that began to wait at once
	pauses []nanos
	phase  int
	needs  uint64 // value of the counter
	asked  nanos
}

type twin struct {
	clients []*client
	now     nanos
	ranks   int
	out     outcome
}

func newTwin(pauses [][]nanos) *twin {
	t := &twin{}
	for _, p := range pauses {
		c := &client{pauses: p}
		t.clients = append(t.clients, c)
		t.rest(c)
	}
	return t
}

func (t *twin) rest(c *client) {
	if len(c.pauses) == 0 {
		c.doing = gone
		return
	}
	c.doing, c.until, c.pauses = pausing, t.now+c.pauses[0], c.pauses[1:]
}

func (t *twin) served(c *client) {
	t.out.Updates++
	t.out.latency += t.now - c.asked
	t.rest(c)
}

func (t *twin) wait(c *client) {
	t.ranks++
	c.doing, c.since, c.rank = waiting, t.now, t.ranks
}

// are the clients that do something, those first that began first.
func (t *twin) are(d doing) (out []*client) {
	for _, c := range t.clients {
		if c.doing == d {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *client) int { return a.rank - b.rank })
	return out
}

// asking is who asks at this tick.
func (t *twin) asking(then func()) {
	for _, c := range t.clients {
		if c.doing != pausing || c.until != t.now {
			continue
		}
		if len(t.are(gone))+len(t.are(pausing)) < len(t.clients) {
			t.out.Contended++
		}
		c.asked, c.phase = t.now, 0
		t.wait(c)
		then()
	}
}

// inLine is mutex, combine and linger.
func inLine(most int, linger nanos, round nanos, batches []batch, pauses [][]nanos) outcome {
	t := newTwin(pauses)
	var end, until nanos
	expected, took := 0, nanos(0)
	start := func() {
		queue := t.are(waiting)
		if len(t.are(carried)) > 0 || len(queue) == 0 || len(queue) < expected && t.now < until {
			return
		}
		queue = queue[:min(most, len(queue))]
		took = 0
		for _, stores := range batches[len(queue)] {
			t.out.Rounds++
			took += stores + round
		}
		end = t.now + took
		for _, c := range queue {
			c.doing = carried
		}
	}
	for ; len(t.are(gone)) < len(t.clients); t.now++ {
		if all := t.are(carried); len(all) > 0 && t.now == end {
			expected, until = len(all)+len(t.are(waiting)), t.now+linger*took
			for _, c := range all {
				t.served(c)
			}
			start()
		}
		t.asking(start)
		start() // a tick that has waited long enough
	}
	return t.out
}

// shared is share. The counter is odd while a round is under way; who stored needs the
// end of the next full one (rcu_seq_snap, kernel/rcu/rcu.h).
func shared(round nanos, script batch, pauses [][]nanos) outcome {
	t := newTwin(pauses)
	var counter uint64
	var end nanos
	pass := func() { // text to whoever waits longest
		if queue := t.are(waiting); len(queue) > 0 && len(t.are(storing)) == 0 {
			queue[0].doing, queue[0].until = storing, t.now+script[queue[0].phase]
		}
	}
	begin := func() {
		if counter%2 == 0 && len(t.are(stored)) > 0 {
			t.out.Rounds++
			counter++
			end = t.now + round
		}
	}
	for ; len(t.are(gone)) < len(t.clients); t.now++ {
		for _, c := range t.are(storing) {
			if c.until == t.now {
				t.ranks++
				c.doing, c.rank, c.needs = stored, t.ranks, (counter+3)&^1
			}
		}
		if counter%2 == 1 && t.now == end {
			counter++
			for _, c := range t.are(stored) {
				if c.needs > counter {
					continue
				}
				if c.phase++; c.phase == len(script) {
					t.served(c)
				} else {
					t.wait(c)
				}
			}
		}
		begin()
		t.asking(func() {})
		pass()
	}
	return t.out
}

// TestTwin: whatever clients ask, the ticking clock counts the same.
func TestTwin(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, round := 1+rng.IntN(6), 1+nanos(rng.IntN(12))
		asks := make([][]nanos, n)
		for i := range asks {
			for range 1 + rng.IntN(8) {
				asks[i] = append(asks[i], nanos(rng.IntN(1+rng.IntN(60))))
			}
		}
		all := []batch{nil}
		for range n {
			var b batch
			for range 1 + rng.IntN(6) {
				b = append(b, 1+nanos(rng.IntN(5)))
			}
			all = append(all, b)
		}
		want := map[string]outcome{
			"mutex": inLine(1, 0, round, all, asks), "combine": inLine(n, 0, round, all, asks),
			"linger": inLine(n, 1, round, all, asks), "share": shared(round, all[1], asks),
		}
		for _, way := range schemes {
			if got := simulate(way, round, all, asks); got != want[way.Name] {
				t.Fatalf("seed %d, %s: %+v, want %+v\nround %d, batches %v, pauses %v", seed, way.Name, got, want[way.Name],
					round, all, asks)
			}
		}
	}
}

// Example_twoHalves is what the clock shows of three clients that never pause.
func Example_twoHalves() {
	three := batch{1, 1, 1}
	asks := [][]nanos{{0, 0}, {0, 0}, {0, 0}}
	all := []batch{nil, three, three, three}
	for _, way := range schemes {
		o := simulate(way, 10, all, asks)
		fmt.Println(way.Name, o.Rounds, "rounds,", o.Updates, "updates")
	}
	// Output:
	// mutex 18 rounds, 6 updates
	// combine 12 rounds, 6 updates
	// linger 9 rounds, 6 updates
	// share 12 rounds, 6 updates
}
