// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/textpoke/textpoke/internal/version"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/lab"
)

// Request is what a client sends for an update.
type Request struct {
	Wish
	Client string `json:"client"`
	Ops    string `json:"ops,omitempty"`
	Enable *bool  `json:"enable"`
	// Deadline is when it expires; nil for never. The year 1, Go's zero time, is long over.
	Deadline *time.Time `json:"deadline,omitempty"`
}

// Wish is all that a client is to want with one ops, or the part of a request that says which records, and how.
type Wish struct {
	// Lease is for how many seconds it is wanted unless the client renews it; 0: for ever.
	Lease   int64    `json:"lease,omitempty"`
	Key     string   `json:"key,omitempty"`
	Filter  []string `json:"filter,omitempty"`
	Records []string `json:"records,omitempty"`
	Wait    bool     `json:"wait,omitempty"`
	Hold    bool     `json:"hold,omitempty"` // over a budget it waits; else it is refused
}

// The service's types that go to clients unchanged.
type (
	Update = service.Update // an accepted request, and what became of it
	CPU    = service.CPU
	Stats  = service.Stats
	Status = service.Status
	Event  = service.Event
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

// Gap says that events before the next one are not known any more.
type Gap struct {
	Missed int64 `json:"missed,omitempty"` // how many, unless they are of an earlier start
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

// Experiment is a question that can be asked.
type Experiment struct {
	Name     string `json:"name"`
	Question string `json:"question"`
	Short    string `json:"short"`
	// Fields are what a request may set.
	Fields []Field `json:"fields"`
}

// Field is one field of an experiment's configuration.
type Field struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Doc     string   `json:"doc"`
	Default string   `json:"default,omitempty"`
	Values  []string `json:"values,omitempty"`
}

// Experiments is all of them.
type Experiments struct {
	Experiments []Experiment `json:"experiments"`
}

// Start asks an experiment's question.
type Start struct {
	Name string `json:"name"`
	Seed uint64 `json:"seed,omitempty"`
	// Config sets fields, each to a text, a number, true or false, or a list of these.
	Config map[string]Value `json:"config,omitempty"`
}

// Value is one value of a field, or a list of them, each as a text.
type Value []string

// UnmarshalJSON reads a text, a number, true or false, or a list of these.
func (v *Value) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		list = []json.RawMessage{b}
	}
	*v = Value{}
	for _, raw := range list {
		var text string
		switch {
		case json.Unmarshal(raw, &text) == nil && string(raw) != "null":
		case len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && string(raw) != "null":
			text = string(raw)
		default:
			return errors.New("want a text, a number, true or false, or a list of these")
		}
		*v = append(*v, text)
	}
	return nil
}

// Result is one run of an experiment.
type Result = lab.Result

// Results is a page of results.
type Results struct {
	Results []Result `json:"results"`
	Next    int64    `json:"next,omitempty"`
}

// Cost is what one update would cost with some buffer, counted.
type Cost struct {
	Buffer      string `json:"buffer"`
	Patches     int    `json:"patches"`
	Flushes     int    `json:"flushes,omitempty"`
	FlushFull   int    `json:"flush_full,omitempty"`
	FlushOrder  int    `json:"flush_order,omitempty"`
	Rounds      int    `json:"rounds"`
	IPIs        int    `json:"ipis"`
	IPIsPerCPU  int    `json:"ipis_per_cpu"`
	BufferBytes int    `json:"buffer_bytes,omitempty"`
}

// Compare is what is enabled now, counted with several buffers.
type Compare struct {
	Records int    `json:"records"`
	Costs   []Cost `json:"costs"`
}
