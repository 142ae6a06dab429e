// SPDX-License-Identifier: Apache-2.0

// Package flags makes flags of a command line of choices.
package flags

import (
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/internal/choice"
)

// Bind adds a flag for each field.
func Bind(to *pflag.FlagSet, fields ...*choice.Field) {
	for _, f := range fields {
		to.Var(&value{Field: f}, f.Name, f.Usage())
		if f.Type == "bool" {
			to.Lookup(f.Name).NoOptDefVal = "true"
		}
	}
}

// value is a field as the flag package knows values.
type value struct {
	*choice.Field
	given bool
}

// Set reads the value. A list that is given again goes on.
func (v *value) Set(text string) error {
	if v.given && v.Field.Type == "list" {
		text = v.Field.String() + "," + text
	}
	v.given = true
	return v.Field.Set(text)
}

func (v *value) Type() string { return v.Field.Type }

// String is the value; the flag package asks the zero value, too.
func (v *value) String() string {
	if v.Field == nil {
		return ""
	}
	return v.Field.String()
}
