// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/sim/axis"
)

// short are the letters of the flags that are typed most.
var short = map[string]string{
	"arch": "a", "buffer": "b", "cpus": "c", "mutate": "m", "protocol": "p", "records": "r", "sites": "s",
}

// addAxes adds a flag for each axis, with its help and what shells complete.
func addAxes[C any](cmd *cobra.Command, axes axis.Table[C]) {
	f := cmd.Flags()
	for i := range axes {
		a := &axes[i]
		switch a.Form {
		case axis.List:
			f.StringSliceP(a.Name, short[a.Name], a.Presets(), a.Usage())
		case axis.Repeat:
			f.StringArrayP(a.Name, short[a.Name], a.Presets(), a.Usage())
		case axis.One:
			f.StringP(a.Name, short[a.Name], a.Default, a.Usage())
		case axis.Switch:
			f.Bool(a.Name, false, a.Usage())
		}
		complete(cmd, &a.Spec)
	}
}

// chosen is what the flags of axes were given.
func chosen[C any](cmd *cobra.Command, axes axis.Table[C]) axis.Choices {
	choices := axis.Choices{}
	for _, a := range axes {
		f := cmd.Flags().Lookup(a.Name)
		if a.Form == axis.Elsewhere || f == nil || !f.Changed {
			continue
		}
		choices[a.Name] = []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			choices[a.Name] = append([]string{}, list.GetSlice()...)
		}
	}
	return choices
}
