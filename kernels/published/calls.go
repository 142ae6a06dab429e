// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/sheet"
)

// The kernels of the tables about call_ops.
const (
	WithoutCallOps = "without_call_ops" // one function for all sites: a list as soon as there are two ops
	WithCallOps    = "with_call_ops"    // each site has a literal that names its ops
)

// The blocks of such a table: what varies in its rows.
const (
	Irrelevant0   = "irrelevant0" // tracers of another function, none on this one
	Irrelevant1   = "irrelevant1" // tracers of another function, one on this one
	RelevantBlock = "relevant"    // tracers of this function, none of another
)

// CallCost is what calls of a function cost, as the kernel's sample module prints
// it (samples/ftrace/ftrace-ops.c, 6.3). Relevant tracers trace the function that
// is called, irrelevant ones another.
type CallCost struct {
	Line        int     `col:"#"` // in the file
	Kernel      string  `col:"kernel,key,without_call_ops|with_call_ops"`
	Block       string  `col:"block,key,irrelevant0|irrelevant1|relevant"`
	Relevant    int     `col:"relevant_tracers,key"`
	Irrelevant  int     `col:"irrelevant_tracers,key"`
	Calls       int64   `col:"calls,positive"`
	TotalNS     int64   `col:"total_ns"`
	PerCallNS   Decimal `col:"per_call_ns"`
	OverheadNS  Decimal `col:"overhead_ns,maybe"` // time of a call beyond that of an untraced one
	HasOverhead bool    `col:"overhead_ns,known"`
}

// CallCosts is the table of those. It is of an emulator; the patch's fourth version
// was measured on hardware, which it does not name: one tracer takes 38 ns with
// call_ops and 122 without, and over the list 5,038 and 15,791 beside 100 and 200
// irrelevant ones.
var CallCosts = &Set[CallCost]{
	Name: "riscv-call-ops",
	Source: "Puranjay Mohan, \"[RFC PATCH] riscv: Implement HAVE_DYNAMIC_FTRACE_WITH_CALL_OPS\", 2024-03-06; sample " +
		"module ftrace-ops on QEMU",
}

// Check holds the numbers of tracers against the block.
func (r *CallCost) Check() (column, reason string) {
	switch {
	case r.PerCallNS.Units < 0:
		return "per_call_ns", "want a number, 0 or more"
	case r.Block == Irrelevant0 && r.Relevant != 0:
		return "relevant_tracers", "block irrelevant0 has none"
	case r.Block == Irrelevant1 && r.Relevant != 1:
		return "relevant_tracers", "block irrelevant1 has one"
	case r.Block == RelevantBlock && r.Irrelevant != 0:
		return "irrelevant_tracers", "block relevant has none"
	}
	return "", ""
}

// PerCall is what a call takes by the row's own total, truncated as the module's
// div_u64 does, with so many digits behind the point.
func (r *CallCost) PerCall(places int) Decimal { return quotient(r.TotalNS, r.Calls, places) }

// Slip is a number that a table derives from others, and that does not follow.
type Slip struct {
	File            string // or the table's name
	Line            int
	Column          string
	Stated, Derived Decimal
	Formula         string // with the row's numbers in it
	Carried         bool   // it follows from another number that is a slip
}

func (s Slip) String() string {
	text := fmt.Sprintf("%s:%d: %s %s: %s is %s", s.File, s.Line, s.Column, s.Stated, s.Formula, s.Derived)
	if s.Carried {
		text += " (it follows from the stated per_call_ns)"
	}
	return text
}

// CallSlips derives every number of a table again, which errors call name:
// per_call_ns is total_ns / calls, overhead_ns is that less the same of the
// kernel's first row without tracers, each to the places that are stated. It
// lists those that do not follow. A kernel without such a row is an error.
func CallSlips(name string, rows []CallCost) (out []Slip, err error) {
	for _, r := range rows {
		if per := r.PerCall(r.PerCallNS.Places); !r.PerCallNS.follows(per) {
			out = append(out, Slip{File: name, Line: r.Line, Column: "per_call_ns", Stated: r.PerCallNS, Derived: per,
				Formula: fmt.Sprintf("%d/%d", r.TotalNS, r.Calls)})
		}
		base, ok := Untraced(rows, r.Kernel)
		if !ok {
			return nil, sheet.Wrong(name, r.Line, "kernel", r.Kernel,
				"has no row with 0 relevant and 0 irrelevant tracers, which overhead_ns is relative to")
		}
		if !r.HasOverhead {
			continue
		}
		places := r.OverheadNS.Places
		per, untraced := r.PerCall(places), base.PerCall(places)
		if derived := per.minus(untraced); !r.OverheadNS.follows(derived) {
			out = append(out, Slip{
				File: name, Line: r.Line, Column: "overhead_ns", Stated: r.OverheadNS, Derived: derived, Formula: fmt.Sprintf("%s-%s", per, untraced),
				Carried: r.PerCallNS.Places == places && r.OverheadNS == r.PerCallNS.minus(untraced),
			})
		}
	}
	return out, nil
}

// Untraced is the kernel's row without any tracer.
func Untraced(rows []CallCost, kernel string) (CallCost, bool) {
	i := slices.IndexFunc(rows, func(r CallCost) bool {
		return r.Kernel == kernel && r.Relevant == 0 &&
			r.Irrelevant == 0
	})
	if i < 0 {
		return CallCost{}, false
	}
	return rows[i], true
}

// CallTime is what a call of a traced function takes, as it was summed up.
type CallTime struct {
	Kernel     string  `col:"kernel,key,without_call_ops|with_call_ops"`
	Relevant   int     `col:"relevant_tracers,key"`
	Irrelevant int     `col:"irrelevant_tracers,key"`
	PerCallNS  Figure  `col:"per_call_ns"` // all of it, where it is known
	OverheadNS float64 `col:"overhead_ns"` // time beyond that of an untraced call
}

// M1Calls is those of an Apple M1.
var M1Calls = &Set[CallTime]{
	Name:   "arm64-call-ops",
	Source: "Mark Rutland, \"arm64: Implement HAVE_DYNAMIC_FTRACE_WITH_CALL_OPS\", baaf553d3bc3, Linux 6.3; Apple M1",
}

// Decimal is a decimal number as it was printed: Units of 10^-Places each.
type Decimal struct {
	Units  int64
	Places int // digits behind the point
}

// maxPlaces bounds the digits behind a number's point.
const maxPlaces = 9

// UnmarshalText reads digits, with a sign in front or not, and with a point among them or not.
func (d *Decimal) UnmarshalText(text []byte) (err error) {
	whole, part, point := strings.Cut(string(text), ".")
	d.Places = len(part)
	if d.Units, err = strconv.ParseInt(whole+part, 10, 64); err != nil || strings.TrimLeft(whole, "+-") == "" ||
		point && (part == "" || part[0] < '0' || part[0] > '9') || len(part) > maxPlaces {
		return fmt.Errorf("want a decimal number, with up to %d digits behind the point", maxPlaces)
	}
	return nil
}

// Float is the nearest float64.
func (d Decimal) Float() float64 {
	f, _ := new(big.Rat).SetFrac(big.NewInt(d.Units), power10(d.Places)).Float64()
	return f
}

// String prints all places.
func (d Decimal) String() string {
	return new(big.Rat).SetFrac(big.NewInt(d.Units), power10(d.Places)).FloatString(d.Places)
}

// quotient is a/b with so many places, truncated, or the largest Decimal where a/b is larger.
func quotient(a, b int64, places int) Decimal {
	n := new(big.Int).Mul(big.NewInt(a), power10(places))
	if n.Quo(n, big.NewInt(b)); !n.IsInt64() {
		return Decimal{math.MaxInt64, places}
	}
	return Decimal{n.Int64(), places}
}

// minus is the difference of two numbers with the same places.
func (d Decimal) minus(e Decimal) Decimal { return Decimal{d.Units - e.Units, d.Places} }

// follows tells whether a printed number can be derived, which has as many
// places. Whole numbers are the sample module's own, which truncates (div_u64):
// they are equal or wrong. Digits behind a point were rounded by somebody, up or
// down: the last one may differ by one.
func (d Decimal) follows(derived Decimal) bool {
	off := d.Units - derived.Units
	return off == 0 || d.Places > 0 && (off == 1 || off == -1)
}

func power10(places int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
}
