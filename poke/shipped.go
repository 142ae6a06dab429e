// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"embed"
	"fmt"
	"path"
)

//go:embed protocols/*.plan
var shipped embed.FS

// ShippedPlan is a plan file that comes with the program.
type ShippedPlan struct {
	Name string // of the protocol, and of the file: breakpoint.plan
	Text []byte
}

// ShippedPlans are the built-in protocols as plan files, by name. What is native
// is breakpoint on x86_64, word on arm64 and word-rounds on riscv64.
func ShippedPlans() []ShippedPlan {
	const dir = "protocols"
	entries, err := shipped.ReadDir(dir)
	if err != nil {
		panic(fmt.Sprintf("embedded plan files: %v", err)) // they are part of the program
	}
	var out []ShippedPlan
	for _, e := range entries {
		text, err := shipped.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			panic(fmt.Sprintf("embedded plan files: %v", err))
		}
		name := e.Name()
		out = append(out, ShippedPlan{name[:len(name)-len(path.Ext(name))], text})
	}
	return out
}
