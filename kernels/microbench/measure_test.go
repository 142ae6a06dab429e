// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/kernels/calibration"
)

var _ = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(t *testing.T) Config {
	t.Helper()
	base, err := calibration.Open("jump-label-24") // of every basis but measured
	if err != nil {
		t.Fatal(err)
	}
	return Config{Name: "here", Arch: "riscv64", Base: base}
}

// check: the calibration is a valid file, what was measured lies in an interval of
// positive numbers, and what was not is that of the base and says so.
func check(t *testing.T, r *Result, base *calibration.Calibration) {
	t.Helper()
	var text bytes.Buffer
	if err := r.Calibration.Write(&text); err != nil {
		t.Fatal(err)
	}
	back, err := calibration.Read("here.csv", &text)
	if err != nil {
		t.Fatal(err)
	}
	if back.Hash() != r.Calibration.Hash() {
		t.Error("the file does not hold what was measured")
	}
	var missing []string
	for _, m := range r.Missing {
		if m.Why == "" {
			t.Errorf("%s is missing for no reason", m.Quantity)
		}
		missing = append(missing, m.Quantity)
	}
	for i, e := range back.Entries {
		name := e.Quantity.Name
		if slices.Contains(missing, name) {
			if e.Value != base.Entries[i].Value || e.Basis != calibration.Assumed || !strings.Contains(e.Source, base.Name) {
				t.Errorf("%+v was not measured", e)
			}
			continue
		}
		if !(0 < e.Low && e.Low <= e.Value && e.Value <= e.High) || e.Basis != methods[name].basis ||
			methods[name].text == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestRun(t *testing.T) {
	c := config(t)
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, c.Base)
	for _, m := range r.Missing {
		if m.Quantity == "comparison" || m.Quantity == "reference" {
			t.Errorf("%s was not measured: %s", m.Quantity, m.Why)
		}
	}
	if len(r.Missing) < len(calibration.Quantities)-len(methods) {
		t.Errorf("only %v are missing", r.Missing)
	}
}

// TestMethodsAreOfQuantities: no method is misspelt.
func TestMethodsAreOfQuantities(t *testing.T) {
	for name := range methods {
		if calibration.ByName(name) == nil || slices.Contains(habits, name) {
			t.Errorf("no quantity %q that can be measured", name)
		}
	}
	for _, name := range habits {
		if calibration.ByName(name) == nil {
			t.Errorf("no quantity %q", name)
		}
	}
}

func TestRunIsCutShort(t *testing.T) {
	c := config(t)
	c.Time = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	r, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	check(t, r, c.Base)

	if r, err = Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	check(t, r, c.Base)
	if len(r.Missing) != len(calibration.Quantities) || r.Missing[0].Why != "cut short" {
		t.Errorf("%v", r.Missing)
	}
}

func TestRunRefuses(t *testing.T) {
	c := config(t)
	c.Time = -1
	if _, err := Run(t.Context(), c); err == nil {
		t.Error("it took a negative time")
	}
	c = config(t)
	c.Name = "a/b"
	if _, err := Run(t.Context(), c); err == nil {
		t.Error("it took a name that is no file's")
	}
}

// TestWithoutCPUs is what remains where threads cannot be kept on a CPU, and on a
// machine that has only one.
func TestWithoutCPUs(t *testing.T) {
	for _, cpus := range [][]int{nil, {0}} {
		c := config(t)
		m := &machine{cpus: cpus, base: c.Base, why: map[string]string{}}
		passes := map[string][]float64{}
		for range minPasses {
			for q, v := range m.pass(t.Context()) {
				passes[q] = append(passes[q], v)
			}
		}
		r := m.result(c, passes, false)
		check(t, r, c.Base)
		i := slices.IndexFunc(r.Missing, func(m Missing) bool { return m.Quantity == "handler" })
		if i < 0 || !strings.HasPrefix(r.Missing[i].Why, "needs ") {
			t.Errorf("%v CPUs: %v", cpus, r.Missing)
		}
	}
}

// TestNoSuchCPU: where a thread cannot be put on its CPU, nobody waits for it.
func TestNoSuchCPU(t *testing.T) {
	cpus, err := threads.Allowed()
	if err != nil {
		t.Skip(err)
	}
	for _, cpus := range [][]int{{cpus[0], 1000}, {1000, cpus[0]}} {
		m := &machine{cpus: cpus, base: config(t).Base, why: map[string]string{}}
		if _, err := m.transfer(t.Context()); err == nil {
			t.Error("a line was transferred to a CPU that does not exist")
		}
		if _, _, err := m.to(t.Context(), 1); err == nil {
			t.Error("a CPU that does not exist took part in a round")
		}
	}
}

func TestCounts(t *testing.T) {
	for most, want := range map[int][]int{1: {0, 1}, 3: {0, 1, 2, 3}, 8: {0, 1, 2, 3, 4, 5, 6, 7, 8},
		479: {0, 1, 69, 137, 205, 274, 342, 410, 479}} {
		if got := counts(most); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", most, got, want)
		}
	}
}

// TestSummarize: the median, and the order statistics that the binomial
// distribution names: for 11 values the 2nd and the 9th hold the median with
// 1 - (12 + 67)/2^11 = 96.1%, and none nearer with 95%.
func TestSummarize(t *testing.T) {
	value, low, high, ok := summarize([]float64{11, 2, 3, 9, 5, 6, 7, 8, 4, 10, 1, -1, 0})
	if value != 6 || low != 2 || high != 9 || !ok {
		t.Errorf("%g in [%g, %g], %v", value, low, high, ok)
	}
	if value, low, high, ok = summarize([]float64{3, 1, 2}); value != 2 || low != 1 || high != 3 || !ok {
		t.Errorf("%g in [%g, %g], %v", value, low, high, ok)
	}
	if _, _, _, ok = summarize([]float64{1, 2, -3}); ok {
		t.Error("two values are not enough")
	}
	if value, _, _, ok = summarize([]float64{1, 2, 3, 4, -1, -2, -3, -4, 0}); ok {
		t.Errorf("%g: most passes saw nothing", value)
	}
}
