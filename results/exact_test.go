// SPDX-License-Identifier: Apache-2.0

package results

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestExactReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(
			rapid.Just(Empty), rapid.Map(rapid.String(), String),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) Value { return String(string(b)) }), rapid.Map(rapid.Int64(),
				Int),
			rapid.Map(rapid.Uint64(), Uint), rapid.Map(rapid.Bool(), Bool),
			rapid.Map(rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }), Float),
		).Draw(t, "cell")
		if got, err := ParseExact(v.Exact()); err != nil || got != v {
			t.Errorf("%q reads back as %q (%T, was %T): %v", v.Exact(), got.Exact(), got.Any(), v.Any(), err)
		}
	})
}

func TestParseExactRefuses(t *testing.T) {
	for _, text := range []string{"x", "i", "i1.5", "u-1", "fNaN", "f+Inf", "bmaybe", "é", "12"} {
		if v, err := ParseExact(text); err == nil || v != Empty {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[Value]float64{Int(-3): -3, Uint(1 << 63): 1 << 63, Float(0.5): 0.5} {
		if got, ok := v.Number(); !ok || got != want {
			t.Errorf("%v: %v, %v", v, got, ok)
		}
	}
	for _, v := range []Value{Empty, String("3"), Bool(true)} {
		if _, ok := v.Number(); ok {
			t.Errorf("%v is a number", v)
		}
	}
}
