// SPDX-License-Identifier: Apache-2.0

// Package calibration holds the times and rates of a machine on which the timed
// engine rests, each with its source. A calibration is a file (Read, Write); some
// are built in (Builtins). Ranges has the published ranges, for answers without a
// machine.
package calibration

import (
	"cmp"
	"embed"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Calibration is the costs of one machine, each with its source.
type Calibration struct {
	Name    string // what results call it; that of a built-in one is its own
	Machine string // what machine, for people
	Arch    string // its instruction set
	CPUs    int    // its logical CPUs
	Costs   Costs
	Entries []Entry // one for each quantity, in the order of Quantities
}

// Basis is how a number is known.
type Basis string

// The ways.
const (
	Published Basis = "published" // stands in the source like this
	Derived   Basis = "derived"   // computed from numbers of the source
	Measured  Basis = "measured"  // by textpoke calibrate, on the machine itself
	Assumed   Basis = "assumed"   // an order of magnitude; no measurement on that machine is known
)

// Entry is one number with where it comes from. Low and High are the ends of an
// interval around it, as wide as its source says; both 0 where it says nothing.
type Entry struct {
	Quantity  *Quantity
	Value     float64
	Low, High float64
	Basis     Basis
	Source    string
}

//go:embed data/*.csv
var data embed.FS

// load reads the built-in calibrations, once. That they are in order is what the
// tests of this package are for.
var load = sync.OnceValue(func() []Calibration {
	all := inputs.Shipped(data, "data", func(name, text string) (*Calibration, error) {
		return Read(name, strings.NewReader(text))
	})
	slices.SortFunc(all, func(a, b Calibration) int {
		return cmp.Or(cmp.Compare(a.CPUs, b.CPUs), cmp.Compare(a.Name, b.Name))
	})
	return all
})

// Builtins lists the built-in calibrations, small machines first. They are the
// caller's own.
func Builtins() []*Calibration {
	return spelling.Each(load(), func(c Calibration) *Calibration { return c.Clone() })
}

// Names lists what they are called.
func Names() []string {
	return spelling.Each(load(), func(c Calibration) string { return c.Name })
}

func builtin(name string) *Calibration {
	for _, c := range load() {
		if c.Name == name {
			return c.Clone()
		}
	}
	return nil
}

// Clone is a deep copy.
func (c *Calibration) Clone() *Calibration {
	d := *c
	d.Entries = slices.Clone(c.Entries)
	return &d
}

// Nearest is the built-in calibration of that instruction set whose number of
// CPUs is nearest by ratio; nil if there is none of that set.
func Nearest(arch string, n int) *Calibration {
	var best *Calibration
	for _, c := range Builtins() {
		if c.Arch == arch && (best == nil || apart(c.CPUs, n) < apart(best.CPUs, n)) {
			best = c
		}
	}
	return best
}

func apart(a, b int) float64 { return math.Abs(math.Log(float64(a) / float64(b))) }
