// SPDX-License-Identifier: Apache-2.0

// Package calibration says what things take on some machine: the times and rates
// that the timed engine rests on, each with where it comes from. A calibration is
// a file (Read, Write); some are built in (Builtins). Ranges is what has been
// published where no machine is named.
package calibration

// Calibration is the costs of one machine, with what is known about each.
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
	Derived   Basis = "derived"   // computed from what stands in the source
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
