// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLaw: half of what is drawn lies below the median of a triangle, and the ends are
// the interval's: 1 to 100 about 10 has its middle at 10, half and twice weigh the same.
func TestLaw(t *testing.T) {
	e := Entry{Value: 10, Low: 1, High: 100, Basis: Assumed}
	near := func(got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*(1+want) {
			t.Errorf("%g, want %g", got, want)
		}
	}
	near(e.law().at(0), 1)
	near(e.law().at(0.5), 10)
	near(e.law().at(1), 100)
	// A triangle on [0, 10] with its top at 5 has 1/8 of its area below 2.5.
	e = Entry{Value: 5, Low: 0, High: 10, Basis: Assumed}
	near(e.law().at(0.125), 2.5)
	near(e.law().at(0.875), 7.5)
	// One whose top is at its end: share (x/10)^2.
	near(Entry{Value: 10, Low: 0, High: 10}.law().at(0.25), 5)
	near(Entry{Value: 7, Basis: Published}.law().at(0.3), 7)
}

// TestInterval: old files with one number a quantity have a range too.
func TestInterval(t *testing.T) {
	send := ByName("send")
	for _, tt := range []struct {
		e         Entry
		low, high float64
	}{
		{Entry{Quantity: send, Value: 8, Basis: Assumed}, 2, 32},
		{Entry{Quantity: send, Value: 8, Basis: Published}, 8, 8},
		{Entry{Quantity: send, Value: 8, Low: 7, High: 9, Basis: Assumed}, 7, 9},
		{Entry{Quantity: ByName("skew"), Value: 50, Basis: Assumed}, 12.5, maxNumber},
		{Entry{Quantity: send, Value: 8, Low: 7, High: 9, Basis: Measured}.Elsewhere(), 2, 32},
		{Entry{Quantity: send, Value: 8, Low: 1, High: 99, Basis: Derived}.Elsewhere(), 1, 99},
		{Entry{Quantity: send, Value: 8, Low: 7, High: 9, Basis: Assumed}.Elsewhere(), 7, 9},
	} {
		if low, high := tt.e.Interval(); low != tt.low || high != tt.high {
			t.Errorf("%+v: %g to %g, want %g to %g", tt.e, low, high, tt.low, tt.high)
		}
	}
}

// TestSpreads: of a sum with known weights, the ends are those of its law, what it hangs
// on is the widest addend, and the share that is assumed is the addend's share.
func TestSpreads(t *testing.T) {
	entries := []Entry{
		{Quantity: ByName("send"), Value: 10, Low: 5, High: 20, Basis: Measured},
		{Quantity: ByName("store"), Value: 20, Low: 19, High: 21, Basis: Assumed},
		{Quantity: ByName("fence"), Value: 30, Basis: Published},
	}
	sum := func(v, out []float64) {
		out[0] = 2*v[0] + v[1] + v[2] // 20 + 20 + 30
		out[1] = v[2]
	}
	got := Spreads(entries, 7, 20000, 2, sum)
	if s := got[0]; s.Likely != 70 || s.Hangs != entries[0].Quantity || math.Abs(s.Assumed-20.0/70) > 1e-9 {
		t.Errorf("%+v", s)
	}
	// Of the sum of a wide addend and a narrow one the wide one makes the ends: 2.5 % of
	// the triangle of ln x over [ln 5, ln 20] lie below ln 5 + ln 2 * sqrt(2*0.025).
	low := 50 + 2*math.Exp(math.Log(5)+math.Ln2*math.Sqrt(2*0.025))
	high := 50 + 2*math.Exp(math.Log(20)-math.Ln2*math.Sqrt(2*0.025))
	if s := got[0]; math.Abs(s.Low-low) > 0.4 || math.Abs(s.High-high) > 1 {
		t.Errorf("%+v, want %g to %g", s, low, high)
	}
	if s := got[1]; s.Hangs != nil || s.Low != 30 || s.High != 30 || s.Assumed != 0 {
		t.Errorf("%+v", s)
	}
	if again := Spreads(entries, 7, 20000, 2, sum); again[0] != got[0] {
		t.Errorf("the same seed: %+v, then %+v", got[0], again[0])
	}
	if other := Spreads(entries, 8, 20000, 2, sum); other[0] == got[0] {
		t.Error("another seed draws the same")
	}
}

// TestBuiltinRanges: every quantity of a built-in calibration has both ends, and what is
// assumed is wide: a factor of three from end to end at the least.
func TestBuiltinRanges(t *testing.T) {
	for _, c := range Builtins() {
		for _, e := range c.Entries {
			switch {
			case !e.Bounded():
				t.Errorf("%s: %s has no interval", c.Name, e.Quantity.Name)
			case e.Basis == Assumed && e.High < 3*e.Low:
				t.Errorf("%s: %s is assumed, and %g to %g", c.Name, e.Quantity.Name, e.Low, e.High)
			}
		}
	}
}

// TestRoundTo holds the integral for sleepers and CPUs that mask interrupts against
// rounds that are drawn.
func TestRoundTo(t *testing.T) {
	const draws = 20000
	random := rand.New(rand.NewPCG(3, 4))
	mixed := []Target{Prompt, Asleep, Prompt, Masking, Masking, Asleep, Prompt}
	for _, c := range []Costs{
		{Send: 200, Jitter: 10e3, IdleWake: 5e3, MaskedStretch: 20e3}, {Send: 200, Jitter: 100, IdleWake: 1e4},
		{Send: 50, IdleWake: 1e3, MaskedStretch: 500}, {Send: 10, Jitter: 300, MaskedStretch: 300}, {Send: 10, IdleWake: 70},
	} {
		var sum, squares float64
		for range draws {
			last := 0.0
			for i, kind := range mixed {
				at := float64(i+1)*c.Send + c.Jitter*random.ExpFloat64()
				switch {
				case kind == Asleep:
					at += c.IdleWake
				case kind == Masking && random.IntN(2) == 0:
					at += c.MaskedStretch * random.ExpFloat64()
				}
				last = max(last, at)
			}
			sum, squares = sum+last, squares+last*last
		}
		mean := sum / draws
		deviation := math.Sqrt(max(squares/draws-mean*mean, 0) / draws)
		if got := c.RoundTo(mixed); math.Abs(got-mean) > 5*deviation+0.005*mean {
			t.Errorf("%+v: %g, drawn %g +- %g", c, got, mean, deviation)
		}
	}
}

// TestOwnSpreads: a calibration's spreads are those of its entries.
func TestOwnSpreads(t *testing.T) {
	c := Builtins()[0]
	at := func(c *Costs, out []float64) { out[0] = c.Send + 2*c.Handler }
	got := c.Spreads(3, 100, 1, at)
	want := Spreads(c.Entries, 3, 100, 1, func(values, out []float64) {
		out[0] = 0
		for i, e := range c.Entries {
			switch e.Quantity.Name {
			case "send":
				out[0] += values[i]
			case "handler":
				out[0] += 2 * values[i]
			}
		}
	})
	if len(got) != 1 || got[0].Likely != c.Costs.Send+2*c.Costs.Handler || got[0] != want[0] {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestBelowSum: at 0 nothing is below, whichever delay has no mean.
func TestBelowSum(t *testing.T) {
	for _, ab := range [][2]float64{{0, 5}, {5, 0}, {5, 5}, {5, 7}} {
		if p := belowSum(0, ab[0], ab[1]); p != 0 {
			t.Errorf("%v: %v at 0", ab, p)
		}
		if p := belowSum(1e6, ab[0], ab[1]); p < 0.999 || p > 1 {
			t.Errorf("%v: %v far away", ab, p)
		}
	}
}
