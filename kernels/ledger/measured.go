// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
)

// Measured is what one CPU of a real kernel took in one row while a tracer was
// switched, or while nothing was.
type Measured struct {
	Kernel      *Kernel
	CPUs        int    // of the machine
	Load        Load   // what was switched
	Enable      bool   // on or off; false of a second of nothing
	Scenario    string // Load and Enable as the file spells them
	Functions   int    // that were patched
	Repetition  int    // from 0
	CPU         int
	Patcher     bool
	Row         string
	Description string // of the row, as the kernel words it
	Delta       int    // interrupts
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
func Measurements() ([]Measured, error) {
	const file = "measured.csv.gz"
	b, err := data.ReadFile("data/" + file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return ReadMeasured(file, r)
}

const measuredHeader = "arch,kernel,cpus,scenario,functions,repetition,cpu,role,row,description,delta"

// ReadMeasured reads measurements as CSV. Errors are *records.ParseError: file,
// line and value.
func ReadMeasured(file string, r io.Reader) ([]Measured, error) {
	s := newSheet(file, r, measuredHeader)
	var out []Measured
	names := measuredScenarios()
	for s.next() {
		m := Measured{
			Kernel: builtin().named(s.cells[0] + "-" + s.cells[1]), CPUs: s.count(2),
			Scenario: s.one(3, names...), Functions: s.count(4), Repetition: s.count(5), CPU: s.count(6),
			Patcher: s.one(7, "patcher", "receiver") == "patcher",
			Row:     s.name(8), Description: s.text(9), Delta: s.count(10),
		}
		m.Enable = strings.HasSuffix(m.Scenario, "_enable")
		m.Load = Load(strings.TrimSuffix(strings.TrimSuffix(m.Scenario, "_enable"), "_disable"))
		switch {
		case s.err != nil:
		case m.Kernel == nil:
			s.fail(1, "kernel", s.cells[0]+"-"+s.cells[1], "no kernel of that name")
		case m.CPU >= m.CPUs:
			s.fail(6, "cpu", s.cells[6], fmt.Sprintf("the machine has %d, from 0", m.CPUs))
		case m.Load.Switches() != (m.Functions > 0):
			s.fail(4, "functions", s.cells[4], "scenario "+m.Scenario+" switches none, or there are some")
		default:
			if _, ok := m.Kernel.Row(m.Row); !ok {
				s.fail(8, "row", m.Row, "no row of "+m.Kernel.Name())
			}
		}
		out = append(out, m)
	}
	if s.err != nil {
		return nil, s.err
	}
	return out, nil
}
