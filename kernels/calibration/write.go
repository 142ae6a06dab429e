// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
)

// Write writes the calibration as a file that Read understands: times in
// nanoseconds, with all the digits it takes to read the same again.
func (c *Calibration) Write(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{columns}
	for _, f := range factNames {
		rows = append(rows, []string{f, facts[f].get(c)})
	}
	for _, e := range c.Entries {
		rows = append(rows, e.cells())
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write calibration %s: %w", c.Name, err)
	}
	return nil
}

// cells are the entry's in a file.
func (e Entry) cells() []string {
	low, high := "", ""
	if e.Bounded() {
		low, high = decimal(e.Low), decimal(e.High)
	}
	return []string{e.Quantity.Name, decimal(e.Value), string(e.Quantity.Unit), low, high, string(e.Basis), e.Source}
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
