// SPDX-License-Identifier: Apache-2.0

// Package axis binds choices to combinations. From a [Table] of them follow the cross product of
// lists, the words that choose one combination again, and which engine refuses what.
//
// A combination is a struct C of the caller's; an [Axis] reads text into it and prints
// what it has. Nothing here knows what the choices mean.
package axis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Form is how the values of an axis are given.
type Form uint8

// The forms.
const (
	List      Form = iota // values with commas between them; repeated, there are more
	Repeat                // one value each time; Split may find several in it
	One                   // one value
	Switch                // there or not: the values are true and false
	Elsewhere             // by the caller, who adds them to the choices
)

// Set puts one value into a combination.
type Set[C any] func(*C) error

// Unfit is why a value does not fit a combination. It is left out there, if another
// value of its axis fits.
type Unfit string

func (u Unfit) Error() string { return string(u) }

// Axis is one thing that can be chosen about combinations.
type Axis[C any] struct {
	// Spec declares it. Without a default, combinations do not change unless a value is chosen.
	choice.Spec
	Form Form
	// Uses are the engines and commands that know the axis, as bits whose meaning is the
	// caller's.
	Uses uint
	// Silent: rows of engines that do not know the axis have nothing in its column, and
	// an engine that does stands beside them.
	Silent bool
	// Needs is the name of an axis without which this one says nothing. Replaces is that
	// of an axis in whose place this one is chosen.
	Needs, Replaces string
	// Column is the column that shows it; "" where that is called as the axis is.
	Column string
	// Split makes single values of the given ones; nil if each is a single one already.
	Split func(given []string) ([]string, error)
	// Parse reads a value, once for all combinations that it is put into. Errors begin
	// with the value, quoted, or with the axis's name.
	Parse func(value string) (Set[C], error)
	// Applies tells whether the axis makes a difference to a combination, nil for always.
	// One to which it makes none is not multiplied.
	Applies func(*C) bool
	// Print is the value that a combination has, "" where it need not be chosen.
	Print func(*C) string
}

// Field declares an axis of a field: how a value is read, and printed.
func Field[C, V any](name, doc string, parse func(string) (V, error), field func(*C) *V, print func(V) string) Axis[C] {
	return Axis[C]{
		Spec: choice.Spec{Name: name, Doc: doc},
		Parse: func(value string) (Set[C], error) {
			v, err := parse(value)
			return func(c *C) error { *field(c) = v; return nil }, err
		},
		Print: func(c *C) string { return print(*field(c)) },
	}
}

// Names declares an axis of a field whose values all have names.
func Names[C, V any](name, doc string, names []string, parse func(string) (V, error), field func(*C) *V,
	print func(V) string) Axis[C] {
	a := Field(name, doc, parse, field, print)
	a.Names, a.Closed = names, true
	return a
}

// Bool declares an axis of a field that is set or not.
func Bool[C any](name, doc string, field func(*C) *bool) Axis[C] {
	a := Field(name, doc, strconv.ParseBool, field, func(on bool) string {
		if on {
			return "true"
		}
		return ""
	})
	a.Form = Switch
	return a
}

// Table is the axes of combinations; the values of the last change fastest.
type Table[C any] []Axis[C]

// For is the axes that some of these engines or commands know.
func (t Table[C]) For(uses uint) Table[C] {
	return spelling.Where(t, func(a Axis[C]) bool { return a.Uses&uses != 0 })
}

// Only are the axes of these names.
func (t Table[C]) Only(names ...string) Table[C] {
	return slices.DeleteFunc(slices.Clone(t), func(a Axis[C]) bool { return !slices.Contains(names, a.Name) })
}

// Named is the axis of a name, nil without one.
func (t Table[C]) Named(name string) *Axis[C] {
	if i := slices.IndexFunc(t, func(a Axis[C]) bool { return a.Name == name }); i >= 0 {
		return &t[i]
	}
	return nil
}

// Flags are the words of a command line that choose just this combination.
func (t Table[C]) Flags(c *C) (words []string) {
	for _, a := range t {
		switch value := a.Print(c); {
		case value == "":
		case a.Form == Switch:
			words = append(words, "--"+a.Name)
		default:
			words = append(words, "--"+a.Name, value)
		}
	}
	return words
}

// Short are the words that choose this combination, without those of preset values.
func (t Table[C]) Short(c *C) (words []string) {
	for i := range t {
		if value := t[i].Print(c); t[i].Default != value {
			words = append(words, t[i:i+1].Flags(c)...)
		}
	}
	return words
}

// Of makes axes of a part of a combination axes of the whole.
func Of[Whole, Part any](t Table[Part], part func(*Whole) *Part) Table[Whole] {
	out := make(Table[Whole], len(t))
	for i, a := range t {
		out[i] = Axis[Whole]{
			Spec: a.Spec, Form: a.Form, Uses: a.Uses, Silent: a.Silent, Needs: a.Needs, Replaces: a.Replaces,
			Column: a.Column, Split: a.Split,
			Parse: func(value string) (Set[Whole], error) {
				set, err := a.Parse(value)
				return func(c *Whole) error { return set(part(c)) }, err
			},
			Print: func(c *Whole) string { return a.Print(part(c)) },
		}
		if a.Applies != nil {
			out[i].Applies = func(c *Whole) bool { return a.Applies(part(c)) }
		}
	}
	return out
}

// Presets are the values when none is chosen.
func (a *Axis[C]) Presets() []string {
	switch {
	case a.Default == "":
		return nil
	case a.Form == List:
		return strings.Split(a.Default, ",")
	}
	return []string{a.Default}
}

// Usage is the axis's help.
func (a *Axis[C]) Usage() string {
	s := a.Spec
	if a.Form == List {
		s.Type = "list"
	}
	return s.Usage()
}
