// SPDX-License-Identifier: Apache-2.0

package coordinator

import "time"

// Listener is told what a Coordinator does. Every function may be nil. Those about
// updates are called by the goroutine that carries requests out, one at a time.
type Listener struct {
	// Began is told which requests are about to be carried out together, and when they
	// were taken up: no deadline was over by then.
	Began func(at time.Time, ts []*Ticket)
	// Held is told which requests wait though no update runs, until when.
	Held func(ts []*Ticket, until time.Time)
	// Split is told that an update of so many requests failed, and that each is
	// tried by itself now.
	Split func(requests int, err error)
	// Ended is told how requests ended, once snapshots show it and before those who
	// wait for them go on. Requests that are cancelled or expire end at any time.
	Ended func(End)
}

// Tee tells two listeners, the first one first.
func Tee(a, b Listener) Listener {
	return Listener{
		Began: func(at time.Time, ts []*Ticket) {
			a.began(at, ts)
			b.began(at, ts)
		},
		Held: func(ts []*Ticket, until time.Time) {
			a.held(ts, until)
			b.held(ts, until)
		},
		Split: func(requests int, err error) {
			a.split(requests, err)
			b.split(requests, err)
		},
		Ended: func(e End) {
			a.ended(e)
			b.ended(e)
		},
	}
}

func (l Listener) began(at time.Time, ts []*Ticket) {
	if l.Began != nil {
		l.Began(at, ts)
	}
}

func (l Listener) held(ts []*Ticket, until time.Time) {
	if l.Held != nil {
		l.Held(ts, until)
	}
}

func (l Listener) split(requests int, err error) {
	if l.Split != nil {
		l.Split(requests, err)
	}
}

func (l Listener) ended(e End) {
	if l.Ended != nil {
		l.Ended(e)
	}
}
