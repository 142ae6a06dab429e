// SPDX-License-Identifier: Apache-2.0

package api

import (
	"time"

	"github.com/textpoke/textpoke/internal/version"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
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
}

// Update is an accepted request, and what became of it.
type Update struct {
	ID        int64     `json:"id"`
	Client    string    `json:"client"`
	Key       string    `json:"key,omitempty"`
	Ops       string    `json:"ops"`
	Enable    bool      `json:"enable"`
	Set       bool      `json:"set,omitempty"`
	Records   int       `json:"records"`
	Lease     int64     `json:"lease,omitempty"`
	State     string    `json:"state"`
	Batch     int64     `json:"batch,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Error     string    `json:"error,omitempty"`
	Submitted time.Time `json:"submitted"`
	Began     time.Time `json:"began,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"`
	Receipt   *Receipt  `json:"receipt,omitempty"`
}

// Receipt is what an update of the text took.
type Receipt = journal.Receipt

// HasEnded tells whether nothing more will become of it.
func (u *Update) HasEnded() bool { return !u.Ended.IsZero() }

func newUpdate(u service.Update) Update {
	return Update{
		ID: u.ID, Client: u.Client, Key: u.Key, Ops: u.Ops, Enable: u.Enable, Set: u.Set, Records: u.Records, Lease: u.Lease,
		State: string(u.State), Batch: u.Batch, Phase: u.Phase, Error: u.Error,
		Submitted: u.Submitted, Began: u.Began, Ended: u.Ended, Deadline: u.Deadline, Receipt: u.Receipt,
	}
}

// Updates is a page of updates.
type Updates struct {
	Updates []Update `json:"updates"`
	Next    int64    `json:"next,omitempty"`
}

// Record is one record and its present state.
type Record struct {
	Index   int    `json:"index"`
	Address string `json:"address"`
	Symbol  string `json:"symbol"`
	Module  string `json:"module,omitempty"`
	Group   int    `json:"group"`
	Enabled bool   `json:"enabled"`
	Users   int    `json:"users"`
}

func newRecord(r service.Record) Record {
	return Record{
		Index: r.Index, Address: r.Addr.String(), Symbol: r.Symbol, Module: r.Module,
		Group: r.Group, Enabled: r.Enabled, Users: r.Users,
	}
}

// Records is a page of records.
type Records struct {
	Records []Record `json:"records"`
	Next    *int     `json:"next,omitempty"` // 0 is an index
}

// CPU is one CPU with what it has taken.
type CPU struct {
	ID         int               `json:"id"`
	Role       string            `json:"role"`
	Online     bool              `json:"online"`
	Taken      map[string]uint64 `json:"taken"`
	RoundsSent uint64            `json:"rounds_sent"`
	Traps      uint64            `json:"traps"`
	Calls      uint64            `json:"calls"`
}

func newCPU(c service.CPU) CPU {
	return CPU{
		ID: c.ID, Role: c.Role, Online: c.Online, Taken: c.Taken,
		RoundsSent: c.RoundsSent, Traps: c.Traps, Calls: c.Calls,
	}
}

func newCPUs(found []service.CPU) []CPU {
	all := []CPU{}
	for _, c := range found {
		all = append(all, newCPU(c))
	}
	return all
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
		Name: e.Name, Count: e.Count, Hit: e.Hit, Skipped: e.Skipped,
	}
	if e.CPU >= 0 {
		out.CPU = &e.CPU
	}
	if e.Update != nil {
		u := newUpdate(*e.Update)
		out.Update = &u
	}
	return out
}

// Stats is what the service has counted since it was started.
type Stats struct {
	Requests   uint64 `json:"requests"`
	Merged     uint64 `json:"merged"`
	Batches    uint64 `json:"batches"`
	Updates    uint64 `json:"updates"`
	Failed     uint64 `json:"failed"`
	Changes    uint64 `json:"changes"`
	Rounds     uint64 `json:"rounds"`
	IPIs       uint64 `json:"ipis"`
	Violations int    `json:"violations"`
	Queued     int    `json:"queued"`
	Enabled    int    `json:"enabled"`
	Ready      bool   `json:"ready"`
	Journal    int64  `json:"journal"`
	Lost       int    `json:"lost"`
	Damaged    int    `json:"damaged"`
}

// Batch is updates that were taken up together.
type Batch struct {
	ID       int64 `json:"id"`
	Requests int   `json:"requests"`
}

// Status is all that a screen shows, as of one moment.
type Status struct {
	Stats   Stats    `json:"stats"`
	CPUs    []CPU    `json:"cpus"`
	Updates []Update `json:"updates"`
	Batches []Batch  `json:"batches"`
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
