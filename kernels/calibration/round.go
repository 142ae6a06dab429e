// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// Target is how a CPU takes an interrupt.
type Target uint8

// The kinds.
const (
	Prompt  Target = iota // as soon as it comes
	Asleep                // after it has woken up (IdleWake)
	Masking               // where it masks interrupts, half of the time, when that is over (MaskedStretch on average)
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
func (c *Costs) Round(targets int) float64 { return c.RoundTo(make([]Target, targets)) }

// RoundTo is the same for targets of several kinds, in the order of sending.
func (c *Costs) RoundTo(targets []Target) float64 {
	if len(targets) < 1 {
		return c.RoundSetup
	}
	return c.RoundSetup + float64(len(targets))*c.Send + c.Delivery + c.slowest(targets) + c.Handler + c.Answer
}

// slowest is E[max_k (delay_k - k*Send)], the integral of P(max > t) over t > 0. No
// delay is negative, so that the maximum is not either.
func (c *Costs) slowest(targets []Target) float64 {
	beyond := c.Jitter
	least, slow := 0.0, false
	for _, t := range targets {
		if t == Asleep {
			least, slow = c.IdleWake, true
		}
		if t == Masking {
			beyond, slow = max(beyond, c.Jitter+c.MaskedStretch), true
		}
	}
	if beyond == 0 && !slow {
		return 0
	}
	// Beyond that many means, n targets add less than n*e^-(ln n + 14) of one.
	until := least + beyond*(math.Log(float64(len(targets)))+14)
	if until <= 0 {
		return 0
	}
	later := func(t float64) float64 { return 1 - c.all(targets, t) }
	if least > 0 { // the distribution has an edge there
		return gauss(later, 0, least) + gauss(later, least, until)
	}
	return gauss(later, 0, until)
}

// all is the probability that all delays are over so long after the last send.
func (c *Costs) all(targets []Target, t float64) float64 {
	all := 1.0
	late, each := math.Exp(-t/c.Jitter), math.Exp(-c.Send/c.Jitter) // 0 without jitter
	if c.Jitter == 0 {
		late, each = 0, 0
	}
	for k := range targets {
		x := t + float64(k)*c.Send
		switch targets[len(targets)-1-k] {
		case Prompt:
			all *= 1 - late
		case Asleep:
			all *= below(x-c.IdleWake, c.Jitter)
		case Masking:
			all *= (below(x, c.Jitter) + belowSum(x, c.Jitter, c.MaskedStretch)) / 2
		}
		late *= each
	}
	return all
}

// below is the distribution of an exponential delay of a mean.
func below(x, mean float64) float64 {
	switch {
	case x < 0:
		return 0
	case mean == 0:
		return 1
	}
	return -math.Expm1(-x / mean)
}

// belowSum is that of the sum of two.
func belowSum(x, a, b float64) float64 {
	switch {
	case a == 0 || b == 0:
		return below(x, a+b)
	case math.Abs(a-b) < 1e-6*a:
		return 1 - (1+x/a)*math.Exp(-x/a)
	}
	return 1 - (a*math.Exp(-x/a)-b*math.Exp(-x/b))/(a-b)
}

// gauss integrates by Gauss's and Legendre's points, which are worked out once.
func gauss(f func(float64) float64, from, to float64) (sum float64) {
	for i, x := range points {
		sum += weights[i] * f(from+(to-from)*x)
	}
	return sum * (to - from)
}

// points and weights are those of [0, 1].
var points, weights = func() (x, w []float64) {
	x, w = make([]float64, 64), make([]float64, 64)
	quad.Legendre{}.FixedLocations(x, w, 0, 1)
	return x, w
}()

// Flip is the mean time, in nanoseconds, of changing that many sites by
// breakpoints, three stores and three rounds a batch, in so many batches.
func (c *Costs) Flip(sites, batches, targets int) float64 {
	return float64(sites)*(c.Verify+c.Publish+3*c.Store) + float64(batches)*3*c.Round(targets)
}
