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

// orNothing is a listener whose functions are there.
func (l Listener) orNothing() Listener {
	if l.Began == nil {
		l.Began = func(time.Time, []*Ticket) {}
	}
	if l.Held == nil {
		l.Held = func([]*Ticket, time.Time) {}
	}
	if l.Split == nil {
		l.Split = func(int, error) {}
	}
	if l.Ended == nil {
		l.Ended = func(End) {}
	}
	return l
}
