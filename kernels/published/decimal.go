// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Decimal is a decimal number as it was printed: Units of 10^-Places each.
type Decimal struct {
	Units  int64
	Places int // digits behind the point
}

// maxPlaces bounds the digits behind the point of what is read.
const maxPlaces = 9

// Whole is a Decimal without digits behind the point.
func Whole(n int64) Decimal { return Decimal{Units: n} }

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
