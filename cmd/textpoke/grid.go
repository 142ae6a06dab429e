// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// gridFlags is the flags that plan and run share: what to change, how, on which
// machine. Lists mean the cross product.
type gridFlags struct {
	sweepFlags
	uses     uint // of sim.Axes
	kallsyms string
}

func (g *gridFlags) register(cmd *cobra.Command, c *common) {
	g.sweepFlags.register(cmd)
	add(cmd, shardField(c))
	addQueue(cmd, c, "let workers do it that take points from this queue (see worker)")
	addAxes(cmd, sim.Axes.For(g.uses))
	// The flag is one of the axes: it cannot be missing.
	_ = cmd.MarkFlagFilename("plan", "plan")
}

// fields are the choices that are no axes.
func (g *gridFlags) fields() []*choice.Field {
	return fields("grid", g)
}

// grid reads a request.
func (g *gridFlags) grid(asked choice.Request, c *common) (grid *sim.Grid, err error) {
	if err := c.kallsyms(g.kallsyms); err != nil {
		return nil, err
	}
	choices := chosen(asked, sim.Axes.For(g.uses))
	choices["seed"] = spelling.Each(c.seeds, func(seed uint64) string { return fmt.Sprint(seed) })
	if grid, err = sim.NewGrid(g.uses, choices, records.Options{Kallsyms: g.kallsyms}); err != nil {
		return nil, err
	}
	c.note(grid.Files()...)
	for _, pattern := range choices["filter"] {
		if file, is := strings.CutPrefix(pattern, "@"); is {
			c.note(file)
		}
	}
	if g.limits, err = g.sweepFlags.read(asked); err == nil && !g.yes && c.cores == 0 {
		err = refuseMany(grid.Points())
	}
	return grid, err
}

// manyPoints is how many combinations a command does without --yes: more are probably a slip.
const manyPoints = 10_000

// refuseMany refuses cross products that are probably a slip, before anything is
// opened.
func refuseMany(points int) error {
	if points <= manyPoints {
		return nil
	}
	n := fmt.Sprint(points)
	if points == math.MaxInt {
		n = "more than " + n
	}
	return fmt.Errorf("the lists make %s combinations: want at most %d, or --yes to do them all", n, manyPoints)
}

// combinations works the combinations out and says what a person should know
// first.
func (c *common) combinations(ctx context.Context, grid *sim.Grid) ([]sim.Config, error) {
	configs, warnings, err := grid.Combinations(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		c.logger().Warn(w)
	}
	for i := range configs {
		if k := configs[i].Calibration; k != nil && !slices.Contains(c.calibrations, k) {
			c.calibrations = append(c.calibrations, k)
		}
	}
	return configs, nil
}

// withChosen shows, in tables for people too, the columns of what several were asked
// for, as rows cannot be told apart without.
func withChosen(t results.Table, grid *sim.Grid) results.Table {
	several := grid.Several()
	for i := range t.Columns {
		if several[t.Columns[i].Name] {
			t.Columns[i].Detail = false
		}
	}
	return t
}
