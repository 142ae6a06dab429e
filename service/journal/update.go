// SPDX-License-Identifier: Apache-2.0

package journal

import "time"

// State is how far an update has got.
type State string

// The states. The first two are on their way, the others are final.
const (
	Queued    State = "queued"
	Running   State = "running" // an update of the text carries it out; never in the file
	Live      State = "live"
	Failed    State = "failed" // every site is as it was before
	Cancelled State = "cancelled"
	Expired   State = "expired" // its deadline came first
)

// States lists them all.
func States() []State { return []State{Queued, Running, Live, Failed, Cancelled, Expired} }

// Final tells whether nothing changes any more.
func (s State) Final() bool { return s != Queued && s != Running }

// Update is what one client asked for, and what became of it.
type Update struct {
	ID      int64 // ascending in the order of acceptance, never used twice
	Client  string
	Key     string // the client's own name for it, "" for none
	Ops     string
	Enable  bool
	Records int // how many it is about
	State   State
	Batch   int64  // number of the text's update that carried it out, 0: none yet
	Phase   string // step that this one is at, while it is running
	Error   string // why it failed

	Submitted, Began, Ended, Deadline time.Time // the zero time: not yet, or none
}

// Order is an update as it is accepted: with everything that is needed to carry
// it out after a restart.
type Order struct {
	Update
	Which  []int  // numbers of its records, ascending
	Digest string // of the request, to tell whether a key is used for another one
}

// Want is what a client wants with one ops of its own.
type Want struct {
	Client, Ops string
	Which       []int
}

// Query chooses updates, ascending by ID.
type Query struct {
	Client string // "" for all
	State  State  // "" for all
	After  int64  // only greater IDs
	Limit  int    // 0: 100
}
