// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

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
			f.StringSliceP(a.Flag, short[a.Flag], a.Preset, a.Usage())
		case axis.Repeat:
			f.StringArrayP(a.Flag, short[a.Flag], a.Preset, a.Usage())
		case axis.One:
			f.StringP(a.Flag, short[a.Flag], strings.Join(a.Preset, ","), a.Usage())
		case axis.Switch:
			f.Bool(a.Flag, false, a.Usage())
		}
		if len(a.Names) > 0 {
			offer(cmd, a.Flag, a.Names)
		}
	}
}

// chosen is what the flags of axes were given.
func chosen[C any](cmd *cobra.Command, axes axis.Table[C]) axis.Choices {
	choices := axis.Choices{}
	for _, a := range axes {
		f := cmd.Flags().Lookup(a.Flag)
		if a.Form == axis.Elsewhere || f == nil || !f.Changed {
			continue
		}
		choices[a.Flag] = []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			choices[a.Flag] = append([]string{}, list.GetSlice()...)
		}
	}
	return choices
}
