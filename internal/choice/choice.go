// SPDX-License-Identifier: Apache-2.0

// Package choice declares what can be chosen in a request, each choice once: its name, what it means, its unit, its
// default, its values, and whether they name files. Flags, JSON, completion, help and validation are made of the
// declaration.
//
// A [Spec] is what is known of a choice without its type, a [Kind] is how values of a type are written, and a
// [Field] is a choice with the variable that holds what was chosen. Package axis binds choices to combinations,
// of which there are as many as lists multiply to.
//
// Nothing here spells flags. An [Error] names choices, and its printer says how names look.
package choice

import (
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Spec declares a choice, whatever the type of its values is.
type Spec struct {
	Name    string   // in lower case, words with dashes between them
	Doc     string   // its meaning; the word for a value stands in backquotes
	Type    string   // what kind of value it is, such as list, machine or file
	Unit    string   // of numbers, as columns have it: ns, bytes, per_s; "" for none
	Default string   // as text; "" where the zero value says it
	Names   []string // the values that have names, which help lists
	Closed  bool     // there are no other values
	// Offers are names that shells complete and help does not list, as something else does; nil for Names.
	Offers func() []string

	// Repeated tells whether each text adds a value to those before it.
	Repeated bool
	// NamesFile tells whether a text is looked for among the files of this machine; nil where none is.
	NamesFile func(text string) bool
}

// Key is the name in JSON.
func (s *Spec) Key() string { return strings.ReplaceAll(s.Name, "-", "_") }

// Usage is the help: what it means, and the values that have names.
func (s *Spec) Usage() string {
	usage := s.Doc
	if s.Type == "list" && !strings.Contains(usage, "`") {
		usage = "`list` of " + usage
	}
	if len(s.Names) > 0 {
		usage += ": " + strings.Join(s.Names, ", ")
	}
	return usage
}

// Completions are the names that a shell completes.
func (s *Spec) Completions() []string {
	if s.Offers != nil {
		return s.Offers()
	}
	return s.Names
}

// IsFile tells whether a text is looked for among the files of this machine.
func (s *Spec) IsFile(text string) bool { return s.NamesFile != nil && s.NamesFile(text) }

// Known refuses a value that is none of the names, where there are no others.
func (s *Spec) Known(value string) error {
	if !s.Closed || slices.Contains(s.Names, value) {
		return nil
	}
	return spelling.NotOneOf(value, s.Names)
}

// AnyFile is the NamesFile of choices whose values are all names of files.
func AnyFile(string) bool { return true }
