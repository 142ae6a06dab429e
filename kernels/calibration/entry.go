// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// magnitude is a unit of time, in nanoseconds.
type magnitude struct {
	name string
	ns   float64
}

// scales are the units of time, smallest first.
var scales = []magnitude{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}

// The most that a quantity can be. A time longer than a day, or a rate of more than one a
// nanosecond, is a slip of the pen.
const (
	maxTime   = 24 * 3600 * 1e9
	maxRate   = 1e9
	maxNumber = 100
)

// units lists what a quantity of this kind can be given in, for people.
func (u Unit) units() []string {
	if u != Time {
		return []string{string(u)}
	}
	return spelling.Each(scales, func(s magnitude) string { return s.name })
}

// scale is the factor from that unit to the quantity's own.
func (u Unit) scale(unit string) (float64, error) {
	if unit == "" {
		return 0, fmt.Errorf("no unit: want %s", strings.Join(u.units(), ", "))
	}
	if !slices.Contains(u.units(), unit) {
		return 0, fmt.Errorf("unit %q: %w", unit, spelling.NotOneOf(unit, u.units()))
	}
	for _, s := range scales {
		if s.name == unit {
			return s.ns, nil
		}
	}
	return 1, nil
}

// most is the greatest value.
func (u Unit) most() float64 {
	switch u {
	case Time:
		return maxTime
	case Rate:
		return maxRate
	}
	return maxNumber
}

// bases are the ways in which a number is known.
var bases = []string{string(Published), string(Derived), string(Measured), string(Assumed)}

// readEntry reads the seven cells of a quantity.
func readEntry(q *Quantity, cells []string) (Entry, error) {
	value, unit, low, high, basis, source := cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]
	e := Entry{Quantity: q, Basis: Basis(basis), Source: source}
	scale, err := q.Unit.scale(unit)
	if err != nil {
		return e, fmt.Errorf("%s: %w", q.Name, err)
	}
	if e.Value, err = number(q, value, scale); err != nil {
		return e, fmt.Errorf("%s: value %q: %w", q.Name, value, err)
	}
	if q.never0 && e.Value == 0 {
		return e, fmt.Errorf("%s: value %q: must not be 0", q.Name, value)
	}
	if (low == "") != (high == "") {
		return e, fmt.Errorf("%s: low %q and high %q: want both or none", q.Name, low, high)
	}
	if low != "" {
		if e.Low, err = number(q, low, scale); err != nil {
			return e, fmt.Errorf("%s: low %q: %w", q.Name, low, err)
		}
		if e.High, err = number(q, high, scale); err != nil {
			return e, fmt.Errorf("%s: high %q: %w", q.Name, high, err)
		}
		switch {
		case e.Low > e.Value:
			return e, fmt.Errorf("%s: low %q: more than the value, %s", q.Name, low, value)
		case e.High < e.Value:
			return e, fmt.Errorf("%s: high %q: less than the value, %s", q.Name, high, value)
		}
	}
	if !slices.Contains(bases, basis) {
		return e, fmt.Errorf("%s: basis %q: %w", q.Name, basis, spelling.NotOneOf(basis, bases))
	}
	if source == "" {
		return e, fmt.Errorf("%s: no source: say where the value is from, or why it is assumed", q.Name)
	}
	return e, nil
}

// number reads a value of that quantity.
func number(q *Quantity, s string, scale float64) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	switch v *= scale; {
	case err != nil, math.IsNaN(v), math.IsInf(v, 0):
		return 0, errors.New("not a number")
	case v < 0:
		return 0, errors.New("negative")
	case v > q.Unit.most():
		return 0, fmt.Errorf("more than %g %s", q.Unit.most(), q.Unit)
	}
	return math.Abs(v), nil // not -0
}

// Write writes the calibration as a file that Read understands: times in
// nanoseconds, with all the digits it takes to read the same again.
func (c *Calibration) Write(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{columns}
	for _, f := range facts {
		rows = append(rows, []string{f.name, f.get(c)})
	}
	for _, e := range c.Entries {
		low, high := "", ""
		if e.Bounded() {
			low, high = decimal(e.Low), decimal(e.High)
		}
		rows = append(rows, []string{e.Quantity.Name, decimal(e.Value), string(e.Quantity.Unit), low, high, string(e.Basis),
			e.Source})
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write calibration %s: %w", c.Name, err)
	}
	return nil
}

// Bounded tells whether the source says how sure the value is.
func (e Entry) Bounded() bool { return e.Low != 0 || e.High != 0 }

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Hash is the SHA-256, in hexadecimal, of what Write writes: two files that say
// the same in other units or another order have the same.
func (c *Calibration) Hash() string {
	h := sha256.New()
	// Nothing can fail: a hash takes whatever is written to it.
	_ = c.Write(h)
	return hex.EncodeToString(h.Sum(nil))
}
