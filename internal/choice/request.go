// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"maps"
	"strings"
)

// Choices are texts for some choices, by name. A choice that is not there was left open.
type Choices map[string][]string

// Request is what is to be done: a command or an experiment, and what was chosen. Flags, JSON, the description of a
// run in a queue and the manifest of a directory all hold the same value.
type Request struct {
	Name   string  `json:"name"`
	Config Choices `json:"config,omitempty"`
}

// ParseArgs reads the words of a command line of which the first is the program's name: --NAME=TEXT, or --NAME and TEXT,
// for each text of each choice. A choice without a text is on.
func ParseArgs(args []string) Request {
	var words []string
	config := Choices{}
	for i := 1; i < len(args); i++ {
		name, is := strings.CutPrefix(args[i], "--")
		if !is || name == "" {
			words = append(words, args[i])
			continue
		}
		name, text, whole := strings.Cut(name, "=")
		if !whole && (i+1 == len(args) || strings.HasPrefix(args[i+1], "--")) {
			text = "true"
		} else if !whole {
			i++
			text = args[i]
		}
		config[name] = append(config[name], text)
	}
	return Request{strings.Join(words, " "), config}
}

// Without is the request without some choices.
func (r Request) Without(names ...string) Request {
	r.Config = maps.Clone(r.Config)
	for _, name := range names {
		delete(r.Config, name)
	}
	return r
}

// Has tells whether a choice was made.
func (r Request) Has(name string) bool { return r.Config[name] != nil }

// Fill sets fields to what was chosen, and returns the choices that are of no field. A name may be spelled as in JSON.
func (c Choices) Fill(fields []*Field) (rest Choices, err error) {
	rest = maps.Clone(c)
	for _, f := range fields {
		for _, name := range []string{f.Name, f.Key()} {
			texts, chosen := rest[name]
			delete(rest, name)
			if !chosen {
				continue
			}
			if err := f.SetAll(texts); err != nil {
				return nil, Errorf("%s %w", Name(f.Name), err)
			}
		}
	}
	return rest, nil
}
