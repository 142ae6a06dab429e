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
		to.Var(value{f}, f.Name, f.Usage())
		if f.Type == "bool" {
			to.Lookup(f.Name).NoOptDefVal = "true"
		}
	}
}

// value is a field as the flag package knows values.
type value struct{ *choice.Field }

func (v value) Type() string { return v.Field.Type }

// String is the value; the flag package asks the zero value, too.
func (v value) String() string {
	if v.Field == nil {
		return ""
	}
	return v.Field.String()
}
