// SPDX-License-Identifier: Apache-2.0

package api

import (
	"time"

	"github.com/textpoke/textpoke/internal/version"
	"github.com/textpoke/textpoke/service"
)

// Request is what a client sends for an update.
type Request struct {
	// Lease is for how many seconds it is wanted unless the client renews it; 0: for ever.
	Lease   int64    `json:"lease,omitempty"`
	Client  string   `json:"client"`
	Key     string   `json:"key,omitempty"`
	Ops     string   `json:"ops,omitempty"`
	Enable  *bool    `json:"enable"`
	Filter  []string `json:"filter,omitempty"`
	Records []string `json:"records,omitempty"`
	// Deadline is when it expires; nil for never. The year 1, Go's zero time, is long over.
	Deadline *time.Time `json:"deadline,omitempty"`
	Wait     bool       `json:"wait,omitempty"`
	Hold     bool       `json:"hold,omitempty"` // over a budget it waits; else it is refused
}

// What a client is told as the service tells it.
type (
	Update = service.Update // an accepted request, and what became of it
	CPU    = service.CPU
	Stats  = service.Stats
	Status = service.Status
	Record = service.Record // and its present state
	Want   = service.Want
	Plan   = service.Plan
)

// Updates is a page of updates.
type Updates struct {
	Updates []Update `json:"updates"`
	Next    int64    `json:"next,omitempty"`
}

// Records is a page of records.
type Records struct {
	Records []Record `json:"records"`
	Next    *int     `json:"next,omitempty"` // 0 is an index
}

// CPUs is all CPUs.
type CPUs struct {
	CPUs []CPU `json:"cpus"`
}

// Plug says whether a CPU is to be online.
type Plug struct {
	Online *bool `json:"online"`
}

// Event is something that happened. Its times are nanoseconds since the machine
// was built.
type Event struct {
	ID      int64   `json:"id"`
	Kind    string  `json:"kind"`
	FromNS  int64   `json:"from_ns"`
	UntilNS int64   `json:"until_ns"`
	CPU     *int    `json:"cpu,omitempty"`
	Name    string  `json:"name,omitempty"`
	Count   int     `json:"count,omitempty"`
	Hit     bool    `json:"hit,omitempty"`
	Skipped uint64  `json:"skipped,omitempty"`
	Update  *Update `json:"update,omitempty"`
}

// Gap says that events before the next one are not known any more.
type Gap struct {
	Missed int64 `json:"missed,omitempty"` // how many, unless they are of an earlier start
}

func newEvent(e *service.Event) Event {
	out := Event{
		ID: e.ID, Kind: string(e.Kind), FromNS: e.FromNS, UntilNS: e.UntilNS,
		Name: e.Name, Count: e.Count, Hit: e.Hit, Skipped: e.Skipped, Update: e.Update,
	}
	if e.CPU >= 0 {
		out.CPU = &e.CPU
	}
	return out
}

// Health is how the server is.
type Health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Version is what program answers.
type Version = version.Program

// Problem is a problem document (RFC 9457). It is an error too: what a client of
// this package makes of an answer.
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Field     string `json:"field,omitempty"`
	RequestID string `json:"request_id,omitempty"`

	retry string // after so many seconds; "": retryAfter
}

func (p *Problem) Error() string {
	switch {
	case p.Detail == "":
		return p.Title
	case p.Field == "":
		return p.Detail
	}
	return p.Field + ": " + p.Detail
}
