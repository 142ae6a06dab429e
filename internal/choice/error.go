// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"fmt"
	"strings"
)

// Name is the name of a choice in an error.
type Name string

// Error is what is wrong with choices. Its text names them as they are declared; [Spell] names them as those know
// them who have made the choices.
type Error struct {
	format string
	args   []any
}

// Errorf makes an error as fmt.Errorf does. The arguments that are a [Name] can be spelled.
func Errorf(format string, args ...any) error { return &Error{format, args} }

// Error is the text with names as they are declared.
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
