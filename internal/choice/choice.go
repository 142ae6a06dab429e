// SPDX-License-Identifier: Apache-2.0

// Package choice declares the choices of a request, each once: its name, its meaning, its unit, its default, its
// values, and whether they name files. Flags, JSON, completion, help and validation are made of the declaration.
//
// A [Spec] describes a choice without its type, a [Kind] says how values of a type are written, and a [Field] is a
// choice with the variable that holds its value. Package axis binds choices to the combinations that their lists
// multiply to.
//
// Nothing here spells flags. An [Error] names choices, and its printer says how names look.
package choice

import (
	"fmt"
	"maps"
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

// Usage is the help: the meaning, and the values that have names.
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

// Choices are texts for some choices, by name. A choice that is not there was left open.
type Choices map[string][]string

// Request is a command or an experiment, with its choices. Flags, JSON, the description of a run in a queue and the
// manifest of a directory all hold the same value.
type Request struct {
	Name   string  `json:"name"`
	Config Choices `json:"config,omitempty"`
}

// ParseArgs reads the words of a command line, behind the program's name: --NAME=TEXT, or --NAME and TEXT, for each
// text of each choice. A choice without a text is on.
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

// Fill sets fields to their choices, and returns the choices without a field. A name may be spelled as in JSON.
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

// Name is the name of a choice in an error.
type Name string

// Error is an error in choices. Its text names them by their declared names; [Spell] names them as the user has
// written them.
type Error struct {
	format string
	args   []any
}

// Errorf makes an error as fmt.Errorf does. The arguments that are a [Name] can be spelled.
func Errorf(format string, args ...any) error { return &Error{format, args} }

// Error is the text with the declared names.
func (e *Error) Error() string { return e.spelled(func(name string) string { return name }) }

// Unwrap are the errors among the arguments.
func (e *Error) Unwrap() (all []error) {
	for _, a := range e.args {
		if err, is := a.(error); is {
			all = append(all, err)
		}
	}
	return all
}

func (e *Error) spelled(spell func(name string) string) string {
	args := make([]any, len(e.args))
	for i, a := range e.args {
		switch a := a.(type) {
		case Name:
			args[i] = spell(string(a))
		case error:
			args[i] = Spell(a, spell)
		default:
			args[i] = a
		}
	}
	return fmt.Sprintf(strings.ReplaceAll(e.format, "%w", "%v"), args...)
}

// Spell is the text of an error, with the names of choices spelled by a function.
func Spell(err error, spell func(name string) string) string {
	if own, is := err.(*Error); is {
		return own.spelled(spell)
	}
	var inside []error
	switch w := err.(type) {
	case interface{ Unwrap() []error }:
		inside = w.Unwrap()
	case interface{ Unwrap() error }:
		inside = []error{w.Unwrap()}
	}
	text := err.Error()
	for _, inner := range inside {
		if inner == nil {
			continue
		}
		if at := strings.LastIndex(text, inner.Error()); at >= 0 { // what wraps an error stands before it
			text = text[:at] + Spell(inner, spell) + text[at+len(inner.Error()):]
		}
	}
	return text
}
