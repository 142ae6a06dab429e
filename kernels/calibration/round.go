// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// Round is the mean time, in nanoseconds, of a round to that many targets, all of
// which take interrupts as soon as they come: the sender prepares, and sends to
// one after the other; the last answer is that of the target for which the time of
// sending, Delivery and the exponential delay add up to most. With k the number of
// sends after a target's own,
//
//	RoundSetup + n*Send + Delivery + E[max_k (delay_k - k*Send)] + Handler + Answer
//
// where the maximum counts from the last send, at which k = 0 makes it positive.
// A round without targets ends when it is prepared.
func (c *Costs) Round(targets int) float64 {
	if targets < 1 {
		return c.RoundSetup
	}
	return c.RoundSetup + float64(targets)*c.Send + c.Delivery + c.slowest(targets) + c.Handler + c.Answer
}

// slowest is E[max_k (delay_k - k*Send)], the integral of P(max > t) over t > 0:
// no delay is negative, so that the maximum is not either.
func (c *Costs) slowest(targets int) float64 {
	if c.Jitter == 0 {
		return 0
	}
	later := func(t float64) float64 {
		none := 1.0
		for k := range targets {
			none *= 1 - math.Exp(-(t+float64(k)*c.Send)/c.Jitter)
		}
		return 1 - none
	}
	// Beyond 40 means, n targets add less than n*e^-40 of one.
	return quad.Fixed(later, 0, 40*c.Jitter, 400, quad.Legendre{}, 0)
}

// Flip is the mean time, in nanoseconds, of changing that many sites by
// breakpoints, three stores and three rounds a batch, in so many batches.
func (c *Costs) Flip(sites, batches, targets int) float64 {
	return float64(sites)*(c.Verify+c.Publish+3*c.Store) + float64(batches)*3*c.Round(targets)
}
