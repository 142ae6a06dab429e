// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
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

// chosen are the choices of a request that are of axes.
func chosen[C any](asked choice.Request, axes axis.Table[C]) axis.Choices {
	choices := axis.Choices{}
	for _, a := range axes {
		if texts := asked.Config[a.Name]; texts != nil && a.Form != axis.Elsewhere {
			choices[a.Name] = texts
		}
	}
	return choices
}
