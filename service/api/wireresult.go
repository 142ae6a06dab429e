// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"

	"github.com/textpoke/textpoke/service/lab"
)

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
