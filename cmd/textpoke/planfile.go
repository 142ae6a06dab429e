package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/poke"
)

// plans reads the files of --plan.
func (g *gridFlags) plans(cmd *cobra.Command, c *common) ([]*poke.Protocol, error) {
	if cmd.Flags().Changed("protocol") {
		return nil, fmt.Errorf("--plan goes in place of --protocol: want one of them")
	}
	var out []*poke.Protocol
	for _, path := range g.plan {
		p, err := readPlan(path)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		c.note(path)
	}
	return out, nil
}

// readPlan reads a protocol from a file.
func readPlan(path string) (*poke.Protocol, error) {
	if path == "" {
		return nil, fmt.Errorf("--plan %q: want a name", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, poke.MaxPlanFile+1)) // one more than is allowed
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	return poke.ParseProtocol(path, src)
}

// shippedPlans are the names of the protocols that there are files of.
func shippedPlans() (names []string) {
	for _, p := range poke.ShippedPlans() {
		names = append(names, p.Name)
	}
	return names
}

// showPlan prints a built-in protocol as a file: what one's own begins as.
func showPlan(c *common, name string) error {
	for _, p := range poke.ShippedPlans() {
		if p.Name == name {
			_, err := fmt.Fprintf(c.streams.out, "%s%s", p.Text, poke.DefaultPath())
			return err
		}
	}
	return fmt.Errorf("--show %q: %w", name, notOneOf(name, shippedPlans()))
}
