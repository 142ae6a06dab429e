// SPDX-License-Identifier: Apache-2.0

package dispatch

// Counts is what calls take; all are exact.
type Counts struct {
	Loads   int64 // objects read because their address was
	Hashes  int64 // lookups of an address in a hash
	Walked  int64 // entries of lists that were walked
	Called  int64 // callbacks called
	Saved   int64 // registers saved
	Atomics int64 // read-modify-writes of words that other CPUs change too
	Traps   int64 // exceptions taken
}

// Add adds up two counts.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Loads + d.Loads, c.Hashes + d.Hashes, c.Walked + d.Walked, c.Called + d.Called,
		c.Saved + d.Saved, c.Atomics + d.Atomics, c.Traps + d.Traps,
	}
}

// Times is so many times the same.
func (c Counts) Times(n int64) Counts {
	return Counts{c.Loads * n, c.Hashes * n, c.Walked * n, c.Called * n, c.Saved * n, c.Atomics * n, c.Traps * n}
}
