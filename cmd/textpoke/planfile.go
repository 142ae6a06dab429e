// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/textpoke/textpoke/poke"
)

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
