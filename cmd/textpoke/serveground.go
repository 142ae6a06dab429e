// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/sim"
)

// ground is the machine that is served.
type ground struct {
	table   *records.Table
	machine service.Maker
	cpus    string
}

// simulated is a machine of sim's. A table says which architecture it is of; one that
// does not is of the first.
func (s *serveFlags) simulated(cmd *cobra.Command) (*ground, error) {
	choices := chosen(s.asked, serveAxes)
	choices["seed"] = []string{fmt.Sprint(s.seed)}
	for _, a := range serveAxes {
		if choices[a.Name] == nil && a.Default != "" && (a.Name != "arch" || choices["records"] == nil) {
			choices[a.Name] = []string{a.Default}
		}
	}
	grid, err := sim.NewGrid(sim.UseLive, choices, records.Options{})
	if err != nil {
		return nil, err
	}
	if several := grid.Several(); several["cpus"] || several["table"] {
		return nil, errors.New("--records, --cpus: want one table and one machine")
	}
	s.note(grid.Files()...)
	configs, err := s.combinations(cmd.Context(), grid)
	if err != nil {
		return nil, err
	}
	c := configs[0]
	return &ground{c.Table, service.Simulated(c, nil), cpus.FormatRoles(c.Roles)}, nil
}

func (s *serveFlags) machine(cmd *cobra.Command) (*ground, error) { return s.simulated(cmd) }
