// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Field is a choice with the variable that holds what was chosen.
type Field struct {
	Spec
	// Get is the value of the variable.
	Get func() any

	set   func(text string) error
	text  func() string
	unset func() bool
	check func() error
}

// Set reads the value. On an error the variable stays as it was.
func (f *Field) Set(text string) error { return f.set(text) }

// SetAll reads the texts that a request has for the field.
func (f *Field) SetAll(texts []string) error {
	if !f.Repeated {
		texts = []string{strings.Join(texts, ",")}
	}
	for _, text := range texts {
		if err := f.Set(text); err != nil {
			return Errorf("%.100q: %w", text, err)
		}
	}
	return nil
}

// String is the value as Set reads it; "" where it is the zero value.
func (f *Field) String() string {
	if f.text == nil || f.unset() {
		return ""
	}
	return f.text()
}

// Complete sets variables that have the zero value to their defaults.
func Complete(fields []*Field) error {
	for _, f := range fields {
		if f.Default == "" || !f.unset() {
			continue
		}
		if err := f.set(f.Default); err != nil {
			return Errorf("default of %s: %w", Name(f.Name), err)
		}
	}
	return nil
}

// Validate tells whether every variable holds a value that a text could have given it.
func Validate(fields []*Field) error {
	var errs []error
	for _, f := range fields {
		if f.unset() {
			continue
		}
		if err := f.check(); err != nil {
			errs = append(errs, Errorf("%s: %w", Name(f.Name), err))
		}
	}
	return errors.Join(errs...)
}

// Kind says how values of a type are written.
type Kind[T any] struct {
	Type   string // what help calls the value
	Unit   string // of numbers
	Names  []string
	Parse  func(string) (T, error)
	Format func(T) string
	// Check tells whether a value that was not parsed is valid; nil where Parse can read what Format has written.
	Check func(T) error
	// NamesFile is that of [Spec].
	NamesFile func(string) bool
}

func (k *Kind[T]) check(v T) error {
	if k.Check != nil {
		return k.Check(v)
	}
	_, err := k.Parse(k.Format(v))
	return err
}

// One makes a field of one value. Where preset is not "", it is what the zero value stands for.
func One[T any](to *T, name, preset, doc string, k Kind[T]) *Field {
	return &Field{
		Spec: Spec{Name: name, Doc: doc, Type: k.Type, Unit: k.Unit, Default: preset, Names: k.Names, NamesFile: k.NamesFile},
		Get:  func() any { return *to },
		set: func(s string) error {
			v, err := k.Parse(s)
			if err == nil {
				*to = v
			}
			return err
		},
		text:  func() string { return k.Format(*to) },
		unset: func() bool { return reflect.ValueOf(to).Elem().IsZero() },
		check: func() error { return k.check(*to) },
	}
}

// List makes a field of a list, which is written with commas between its values.
func List[T any](to *[]T, name, preset, doc string, k Kind[T]) *Field {
	f := One(to, name, preset, doc, Kind[[]T]{
		Type: "list", Unit: k.Unit, Names: k.Names,
		Parse:  func(s string) ([]T, error) { return spelling.ReadEach(strings.Split(s, ","), k.Parse) },
		Format: func(list []T) string { return strings.Join(spelling.Each(list, k.Format), ",") },
		Check: func(list []T) error {
			for _, v := range list {
				if err := k.check(v); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if k.NamesFile != nil {
		f.NamesFile = func(s string) bool { return slices.ContainsFunc(strings.Split(s, ","), k.NamesFile) }
	}
	f.unset = func() bool { return len(*to) == 0 }
	return f
}

// Strings makes a field of texts. Each text adds one; the first takes the place of the default.
func Strings(to *[]string, name, typ, preset, doc string, namesFile func(string) bool) *Field {
	given := false // a text, and not only the default
	return &Field{
		Spec: Spec{Name: name, Doc: doc, Type: typ, Default: preset, Repeated: true, NamesFile: namesFile},
		Get:  func() any { return *to },
		set: func(s string) error {
			if s == "" {
				return errors.New("want a name")
			}
			switch {
			case len(*to) == 0 && s == preset:
				*to = []string{s}
				return nil
			case !given:
				*to, given = nil, true
			}
			*to = append(*to, s)
			return nil
		},
		text:  func() string { return strings.Join(*to, " ") },
		unset: func() bool { return len(*to) == 0 },
		check: func() error {
			if slices.Contains(*to, "") {
				return errors.New("want names that are not empty")
			}
			return nil
		},
	}
}
