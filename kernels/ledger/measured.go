// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/sheet"
)

// Measured is what one CPU of a real kernel took in one row while a tracer was
// switched, or while nothing was.
type Measured struct {
	Kernel      *Kernel
	Line        int    `col:"#"`
	Arch        string `col:"arch"`
	Release     string `col:"kernel"`
	CPUs        int    `col:"cpus"`     // of the machine
	Scenario    string `col:"scenario"` // Load and Enable as the file spells them
	Load        Load   // what was switched
	Enable      bool   // on or off; false of a second of nothing
	Functions   int    `col:"functions"`  // that were patched
	Repetition  int    `col:"repetition"` // from 0
	CPU         int    `col:"cpu"`
	Role        string `col:"role,patcher|receiver"`
	Patcher     bool
	Row         string `col:"row"`
	Description string `col:"description,maybe"` // of the row, as the kernel words it
	Delta       int    `col:"delta"`             // interrupts
}

// Check finds the kernel, and holds the row against it.
func (m *Measured) Check() (column, reason string) {
	m.Kernel, _ = Named(m.Arch + "-" + m.Release)
	m.Patcher, m.Enable = m.Role == "patcher", strings.HasSuffix(m.Scenario, "_enable")
	m.Load = Load(strings.TrimSuffix(strings.TrimSuffix(m.Scenario, "_enable"), "_disable"))
	switch {
	case m.Kernel == nil:
		return "kernel", "no kernel of that name"
	case !slices.Contains(measuredScenarios(), m.Scenario):
		return "scenario", "want one of " + strings.Join(measuredScenarios(), ", ")
	case m.CPU >= m.CPUs:
		return "cpu", fmt.Sprintf("the machine has %d, from 0", m.CPUs)
	case m.Load.Switches() != (m.Functions > 0):
		return "functions", "scenario " + m.Scenario + " switches none, or there are some"
	}
	if _, ok := m.Kernel.Row(m.Row); !ok {
		return "row", "no row of " + m.Kernel.Name()
	}
	return "", ""
}

// Load is what was switched, and which functions.
type Load string

// The loads. Idle and Spin are one second in which nothing was switched, CPU 0
// asleep or busy. First and Spread are the function tracer on the first functions
// of the table, and on some that lie evenly over it; the last two are with modules
// that were loaded, unloaded and loaded again.
const (
	Idle        Load = "idle1s"
	Spin        Load = "spin1s"
	Function    Load = "function"
	Graph       Load = "graph"
	First       Load = "k_first"
	Spread      Load = "k_spread"
	ModulesAll  Load = "mod_shuffled_all"
	ModulesOnly Load = "mod_shuffled_only"
)

// Switches tells whether the load switches anything.
func (l Load) Switches() bool { return l != Idle && l != Spin }

// Scenario is whose ledger tells what the load sends.
func (l Load) Scenario() Scenario {
	if l == Graph {
		return FunctionGraph
	}
	return FunctionTracer
}

// measuredScenarios are the names in files.
func measuredScenarios() []string {
	out := []string{string(Idle), string(Spin)}
	for _, l := range []Load{Function, Graph, First, Spread, ModulesAll, ModulesOnly} {
		out = append(out, string(l)+"_enable", string(l)+"_disable")
	}
	return out
}

// Measurements are those that come with the program; data/README.md says where
// they are from.
func Measurements() ([]Measured, error) { return readPacked("measured.csv.gz", sheet.Read[Measured]) }
