// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Field is one field of a Config: what it is called where a configuration is written
// down, what it means, and how its text is read. Flags, requests over the network,
// defaults, completion and validation are all made of it.
type Field struct {
	Name    string   // as a flag has it
	Doc     string   // what it means; the value's own name stands in backquotes
	Type    string   // what kind of value it is, such as list, machine or file
	Default string   // as text; "" where the zero value says it
	Names   []string // the valid values, where they can be listed

	// Repeated tells whether each Set adds a value to those before it.
	Repeated bool
	// NamesFile tells whether a text is looked for among the files of this machine.
	NamesFile func(text string) bool
	// Get is the value that the Config holds.
	Get func() any

	set   func(text string) error
	text  func() string
	unset func() bool
	check func() error
}

// Key is the field's name in JSON.
func (f *Field) Key() string { return strings.ReplaceAll(f.Name, "-", "_") }

// Set reads the value. On an error the Config stays as it was.
func (f *Field) Set(text string) error { return f.set(text) }

// String is the value as Set reads it; "" where it is the zero value.
func (f *Field) String() string {
	if f.text == nil || f.unset() {
		return ""
	}
	return f.text()
}

// complete sets a field that has the zero value to its default.
func (f *Field) complete() error {
	if f.Default == "" || !f.unset() {
		return nil
	}
	if err := f.set(f.Default); err != nil {
		return fmt.Errorf("default of --%s: %w", f.Name, err)
	}
	return nil
}

// flag is a field on the command line.
type flag struct{ *Field }

func (f flag) Type() string { return f.Field.Type }

// String is the value; a list that is empty by default is shown as nothing.
func (f flag) String() string {
	if f.Field == nil {
		return ""
	}
	return f.Field.String()
}

// Bind registers a flag for each field.
func Bind(f *pflag.FlagSet, fields []*Field) {
	for _, field := range fields {
		usage := field.Doc
		if len(field.Names) > 0 {
			usage += ": " + strings.Join(field.Names, ", ")
		}
		f.Var(flag{field}, field.Name, usage)
		if field.Type == "bool" {
			f.Lookup(field.Name).NoOptDefVal = "true"
		}
	}
}

// Validate tells whether every field holds a value that its text could have given it.
func Validate(fields []*Field) error {
	var errs []error
	for _, f := range fields {
		if f.unset() {
			continue
		}
		if err := f.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	return errors.Join(errs...)
}

// FieldKind says how values of a type are written.
type FieldKind[T any] struct {
	Type   string // what help calls the value
	Names  []string
	Parse  func(string) (T, error)
	Format func(T) string
	// Check tells whether a value that was not parsed is valid; nil where Parse can
	// read what Format has written.
	Check func(T) error
	// NamesFile is that of [Field]; nil for NoFile.
	NamesFile func(string) bool
}

func (k *FieldKind[T]) check(v T) error {
	if k.Check != nil {
		return k.Check(v)
	}
	_, err := k.Parse(k.Format(v))
	return err
}

// Strings makes a field of texts: a flag of it is repeated for each of them.
func Strings(to *[]string, name, typ, preset, doc string, namesFile func(string) bool) *Field {
	given := false // a text, and not only the default
	return &Field{
		Name: name, Doc: doc, Type: typ, Default: preset, Repeated: true, NamesFile: namesFile,
		Get: func() any { return *to },
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

// NoFile is the NamesFile of fields that name no files.
func NoFile(string) bool { return false }

// One makes a field of one value. Where preset is not "", it is what the zero value
// stands for.
func One[T any](to *T, name, preset, doc string, k FieldKind[T]) *Field {
	if k.NamesFile == nil {
		k.NamesFile = NoFile
	}
	return &Field{
		Name: name, Doc: doc, Type: k.Type, Default: preset, Names: k.Names, NamesFile: k.NamesFile,
		Get: func() any { return *to },
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
func List[T any](to *[]T, name, preset, doc string, k FieldKind[T]) *Field {
	f := One(to, name, preset, doc, FieldKind[[]T]{
		Type: "list", Names: k.Names,
		Parse: func(s string) (out []T, err error) {
			for part := range strings.SplitSeq(s, ",") {
				v, err := k.Parse(part)
				if err != nil {
					return nil, err
				}
				out = append(out, v)
			}
			return out, nil
		},
		Format: func(list []T) string {
			out := make([]string, len(list))
			for i, v := range list {
				out[i] = k.Format(v)
			}
			return strings.Join(out, ",")
		},
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
		f.NamesFile = func(s string) bool {
			for part := range strings.SplitSeq(s, ",") {
				if k.NamesFile(part) {
					return true
				}
			}
			return false
		}
	}
	f.unset = func() bool { return len(*to) == 0 }
	return f
}
