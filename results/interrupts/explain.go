// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"math"
	"math/bits"
)

// Explanation says which broadcasts the counts of a row can come from.
type Explanation struct {
	// Consistent is true when some sequence of broadcasts gives these deltas.
	Consistent bool
	// Known is true when it also follows how many there were. It does not on a single CPU, which
	// has no other to interrupt.
	Known bool
	// Rounds is the number of broadcasts; 0 unless Known.
	Rounds int64
	// Sent is how many of them each CPU sent; nil unless Known.
	Sent []int64
	// Senders is how many CPUs sent at least one. With more than one the patcher moved to
	// another CPU in between, or several CPUs patched.
	Senders int
	// Reason says why the deltas are not consistent, or why a yes says less than usual (one CPU,
	// two CPUs).
	Reason string
}

// Explain infers rounds and senders from the deltas of all online CPUs; the
// package comment derives the formula. In reasons, CPUs are numbered from 0.
func Explain(delta []int64) Explanation { return explain(delta, nil) }

// Explain is [Explain] with the row's own CPU numbers.
func (d RowDelta) Explain() Explanation {
	switch {
	case d.Missing() != "":
		return Explanation{Reason: "the row is missing " + d.Missing()}
	case d.CPUs == nil:
		return Explanation{Reason: "the row counts for the whole machine, not for each CPU"}
	}
	return explain(d.Delta, d.CPUs)
}

func explain(delta []int64, cpus []int) Explanation {
	cpu := func(i int) int {
		if cpus == nil {
			return i
		}
		return cpus[i]
	}
	for i, d := range delta {
		if d < 0 {
			return Explanation{Reason: fmt.Sprintf("CPU %d counted backwards: %d", cpu(i), d)}
		}
	}
	switch {
	case len(delta) == 0:
		return Explanation{Reason: "there are no CPUs"}
	case len(delta) == 1 && delta[0] != 0:
		return Explanation{Reason: fmt.Sprintf("a single CPU has no other that interrupts it: the %d came from elsewhere",
			delta[0])}
	case len(delta) == 1:
		return Explanation{Consistent: true, Reason: "a single CPU shows nothing about rounds: it has no other to interrupt"}
	}
	receivers := uint64(len(delta) - 1)
	// N deltas below 2^63 sum up to less than (N-1) times 2^64, so that the quotient
	// fits in 64 bits.
	high, low := sum(delta)
	rounds, rest := bits.Div64(high, low, receivers)
	if rest != 0 {
		return Explanation{Reason: fmt.Sprintf("the sum over %d CPUs is no multiple of %d, as whole rounds "+
			"would make it: %d left over", len(delta), receivers, rest)}
	}
	if rounds > math.MaxInt64 {
		return Explanation{Reason: "the deltas are too large to be interrupts"}
	}
	e := Explanation{Consistent: true, Known: true, Rounds: int64(rounds), Sent: make([]int64, len(delta))}
	for i, d := range delta {
		// Not above Rounds, since d is not below 0.
		if e.Sent[i] = e.Rounds - d; e.Sent[i] < 0 {
			return Explanation{Reason: fmt.Sprintf("CPU %d received %d, more than the %d rounds that the sum allows", cpu(i), d,
				rounds)}
		}
		if e.Sent[i] > 0 {
			e.Senders++
		}
	}
	if len(delta) == 2 && rounds > 0 {
		e.Reason = "with two CPUs any two counts fit: each counts what the other sent"
	}
	return e
}

// sum adds up non-negative numbers in 128 bits.
func sum(delta []int64) (high, low uint64) {
	for _, d := range delta {
		var carry uint64
		low, carry = bits.Add64(low, uint64(d), 0)
		high += carry
	}
	return high, low
}
