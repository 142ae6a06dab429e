// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/textpoke/textpoke/kernels/calibration"
)

// repeated is one number, so many times.
func repeated(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

// roundsOf is what 100 rounds took: half of them a time and ten more of them another, so that the median is the first
// and the ninth decile the second.
func roundsOf(median, decile float64) []float64 {
	return slices.Concat(repeated(11, decile), repeated(50, median), repeated(39, median-1))
}

// TestApart: of a round remains what its other parts do not explain; a thread that did not stand still, and a call that
// takes as long as a round, say nothing.
func TestApart(t *testing.T) {
	base := config(t).Base
	costs := &base.Costs
	ln5 := math.Log(5)
	jitter := 10 * ln5 // of a delay with this mean, the ninth decile lies 10 ln 5 behind the median
	none, one := seen{0, repeated(100, 300), nil}, seen{1, roundsOf(1000, 1000+jitter), nil}
	rest := 1000 - 300 - 10*math.Ln2
	for name, c := range map[string]struct {
		call  float64
		all   []seen
		found map[string]float64
		want  map[string]float64
		why   map[string]string
	}{
		"two CPUs": {50, []seen{none, {1, slices.Clone(one.times), repeated(100, 77)}}, map[string]float64{"answer": 40},
			map[string]float64{"answer": 40, "round_setup": 250, "handler": 77, "jitter": 10,
				"delivery": rest - 77 - 40 - costs.Send},
			map[string]string{"send": "needs a third CPU; delivery holds it, less what is taken over"}},
		"four CPUs": {300, []seen{none, one, {2, repeated(100, 1200), nil}, {3, repeated(100, 1400), nil}}, map[string]float64{},
			map[string]float64{"jitter": 10, "send": 200, "delivery": rest - costs.Handler - costs.Answer - 200},
			map[string]string{}},
		"no tail": {301, []seen{none, {1, repeated(100, 400), nil}}, map[string]float64{"answer": 1, "handler": 2},
			map[string]float64{"answer": 1, "handler": 2, "jitter": 0, "delivery": 400 - 300 - 1 - 2 - costs.Send},
			map[string]string{"send": "needs a third CPU; delivery holds it, less what is taken over"}},
	} {
		m := &machine{base: base, why: map[string]string{}}
		m.apart(c.call, c.all, c.found)
		if d := cmp.Diff(c.want, c.found, cmpopts.EquateApprox(0, 1e-9)) + cmp.Diff(c.why, m.why); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestQuantile: the least time that so many of them do not exceed, however they come.
func TestQuantile(t *testing.T) {
	for p, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 3, 0.59: 3, 0.61: 4, 0.9: 5, 1: 5} {
		if got := quantile(p, []float64{5, 3, 1, 4, 2}); got != want {
			t.Errorf("%g: %g, want %g", p, got, want)
		}
	}
}

// TestPauses: a pause is longer than four steps, and lasts as long as it is longer than one; as many count as a pass
// has rounds, the longest; of fewer than half as many nothing is said.
func TestPauses(t *testing.T) {
	of := func(gaps ...float64) []float64 {
		p := pauses{step: 10}
		for _, gap := range gaps {
			p.look(gap)
		}
		return p.ofRounds()
	}
	half := repeated(roundsAPass/2, 41)
	if got := of(half[1:]...); got != nil {
		t.Errorf("%v of %d pauses", got, len(half)-1)
	}
	if got := of(slices.Concat(half[1:], repeated(1000, 40))...); got != nil {
		t.Errorf("%v, and 40 are just four steps", got)
	}
	if d := cmp.Diff(repeated(roundsAPass/2, 31), of(half...)); d != "" {
		t.Error(d)
	}
	many := slices.Concat([]float64{500}, repeated(roundsAPass, 60), half)
	if d := cmp.Diff(append(repeated(roundsAPass-1, 50), 490), of(many...)); d != "" {
		t.Error(d)
	}
	p := pauses{step: 10}
	for range 100*roundsAPass + 7 {
		p.look(50)
	}
	if len(p.longest) != 100*roundsAPass {
		t.Errorf("%d pauses are kept", len(p.longest))
	}
}

// TestNotes: quantities have the reason of an error, but that the time is over is none of theirs.
func TestNotes(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	m := &machine{why: map[string]string{}}
	m.note(t.Context(), nil, "send")
	m.note(over, errors.New("late"), "jitter")
	m.note(over, nil, "answer")
	m.note(t.Context(), errors.New("no"), "delivery", "handler")
	if d := cmp.Diff(map[string]string{"delivery": "no", "handler": "no"}, m.why); d != "" {
		t.Error(d)
	}
}

// TestValue: a quantity is what the pass found, be it nothing, and else the base's.
func TestValue(t *testing.T) {
	m := &machine{base: config(t).Base}
	found := map[string]float64{"answer": 7, "send": 0}
	if a, s, h := m.value(found, "answer"), m.value(found, "send"), m.value(found, "handler"); a != 7 || s != 0 ||
		h != m.base.Costs.Handler || h == 0 {
		t.Errorf("%g, %g and %g", a, s, h)
	}
}

// TestSummarizeBorders: none of the passes that saw 0 counts, and a median that rounds to 0 is no cost.
func TestSummarizeBorders(t *testing.T) {
	if value, low, high, ok := summarize([]float64{0, 0, 1.004, 2, 3, 4}); value != 2.5 || low != 1 || high != 4 || !ok {
		t.Errorf("%g in [%g, %g], %v", value, low, high, ok)
	}
	if value, _, _, ok := summarize(repeated(6, 0.004)); ok {
		t.Errorf("%g is a cost", value)
	}
	if value, low, high, ok := summarize(repeated(6, 0.006)); value != 0.01 || low != 0.01 || high != 0.01 || !ok {
		t.Errorf("%g in [%g, %g], %v", value, low, high, ok)
	}
}

// TestResult: every quantity is what its passes say, by the method that measures it, or the base's, with the reason;
// what the base itself took over says so once.
func TestResult(t *testing.T) {
	c := config(t)
	c.Base.Entries[slices.IndexFunc(c.Base.Entries, func(e calibration.Entry) bool { return e.Quantity.Name == "verify" })].
		Source = takenOver + " older: assumed: of old"
	c.Also = []Bench{{Quantity: "store", Basis: calibration.Derived, Text: "a store of ours"},
		{Quantity: "fence", Basis: calibration.Measured, Text: "a fence of ours"}}
	passes := map[string][]float64{"send": repeated(7, 100), "store": repeated(6, 20), "delivery": repeated(6, -1),
		"stop_wake": repeated(6, -1)}
	wrong := map[string]string{"handler": "no thread stood still"}
	for _, cut := range []bool{false, true} {
		noise := map[bool]string{false: "lost in the noise", true: "cut short"}[cut]
		r := (&machine{cpus: []int{4, 5, 9}, why: wrong}).result(c, passes, cut)
		if got := r.Calibration; got.Name != "here" || got.Arch != "riscv64" || got.CPUs != 3 || got.Machine != describe() ||
			len(got.Entries) != len(calibration.Quantities) {
			t.Errorf("%+v", got)
		}
		var missing []Missing
		for i, e := range r.Calibration.Entries {
			base, name := c.Base.Entries[i], e.Quantity.Name
			var want calibration.Entry
			switch why := ""; name {
			case "send":
				want = calibration.Entry{Value: 100, Low: 100, High: 100, Basis: calibration.Measured,
					Source: "slope of membarrier over the number of CPUs interrupted; 7 passes of textpoke calibrate"}
			case "store":
				want = calibration.Entry{Value: 20, Low: 20, High: 20, Basis: calibration.Derived,
					Source: "a store of ours; 6 passes of textpoke calibrate"}
			default:
				_, can := methods[name]
				switch {
				case name == "handler":
					why = "no thread stood still"
				case can, name == "fence":
					why = noise
				case slices.Contains(habits, name):
					why = "depends on how the machine is used"
				default:
					why = "only the kernel could"
				}
				missing = append(missing, Missing{name, why})
				want = base.Elsewhere()
				if name != "verify" {
					want.Source = "not measured: taken over from jump-label-24, which says: " + string(base.Basis) + ": " + base.Source
				}
			}
			want.Quantity = base.Quantity
			if e != want || *e.Quantity.Of(&r.Calibration.Costs) != want.Value {
				t.Errorf("cut short %v: %+v, want %+v", cut, e, want)
			}
		}
		if d := cmp.Diff(missing, r.Missing); d != "" {
			t.Errorf("cut short %v: %s", cut, d)
		}
	}
	if r := (&machine{why: wrong}).result(c, nil, false); r.Calibration.CPUs != 1 {
		t.Errorf("%d CPUs", r.Calibration.CPUs)
	}
}

// TestSinks: what is measured is done, as often as a pass has it: additions, and the comparisons of a binary search,
// whose steps are counted here once more.
func TestSinks(t *testing.T) {
	before := sink.Load()
	if ns := reference(); !(ns > 0) || sink.Load()-before != addsAPass {
		t.Errorf("%d additions, of %g ns", sink.Load()-before, ns)
	}
	steps := func(n, at int) (sum int64) {
		for low, high := 0, n; ; {
			mid := (low + high) / 2
			sum++
			switch {
			case mid == at:
				return sum
			case mid < at:
				low = mid + 1
			default:
				high = mid
			}
		}
	}
	want := int64(0)
	for _, n := range []int{1, 4, 16, 64, 256, 1024, 4096} {
		for i := range lookupsAPass {
			want += steps(n, 1597*(i+1)%n)
		}
	}
	before = sink.Load()
	comparison()
	if got := sink.Load() - before; got != want {
		t.Errorf("%d comparisons, want %d", got, want)
	}
}
