// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

func itoa(n int) string { return strconv.Itoa(n) }

func fields(c Costs) (all []float64) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(c)) {
		all = append(all, reflect.ValueOf(c).FieldByIndex(f.Index).Float())
	}
	return all
}

// checkComplete: every quantity once, in order, within its bounds and with a source.
func checkComplete(t *testing.T, c *Calibration) {
	t.Helper()
	if len(c.Entries) != len(Quantities) {
		t.Fatalf("%s: %d entries", c.Name, len(c.Entries))
	}
	for i, e := range c.Entries {
		if e.Quantity != &Quantities[i] || *e.Quantity.Of(&c.Costs) != e.Value {
			t.Errorf("%s: entry %d is of %s", c.Name, i, e.Quantity.Name)
		}
		if !(e.Value >= 0 && e.Value <= e.Quantity.Unit.most()) || e.Bounded() && !(e.Low <= e.Value && e.Value <= e.High) {
			t.Errorf("%s: %s: %g in [%g, %g]", c.Name, e.Quantity.Name, e.Value, e.Low, e.High)
		}
		if e.Source == "" || !slices.Contains(bases, string(e.Basis)) {
			t.Errorf("%s: %s: basis %q, source %q", c.Name, e.Quantity.Name, e.Basis, e.Source)
		}
	}
}

func TestBuiltins(t *testing.T) {
	arches := map[string]bool{}
	all := Builtins()
	for _, c := range all {
		checkComplete(t, c)
		arches[c.Arch] = true
		for _, e := range c.Entries {
			if other, ok := strings.CutPrefix(lastWords(e.Source), "see "); ok && ByName(other) == nil && builtin(other) == nil {
				t.Errorf("%s: %s refers to %q", c.Name, e.Quantity.Name, other)
			}
		}
	}
	if len(arches) != len(cpus.ArchNames()) {
		t.Errorf("only of %v", arches)
	}
	if all[0].CPUs != 2 || all[len(all)-1].CPUs != 480 {
		t.Errorf("from %d CPUs to %d", all[0].CPUs, all[len(all)-1].CPUs)
	}
	all[0].Entries[0].Value = -1
	if builtin(all[0].Name).Entries[0].Value == -1 {
		t.Error("who asks for the built-in calibrations can change them")
	}
}

// lastWords is what follows the last colon.
func lastWords(s string) string { return strings.TrimSpace(s[strings.LastIndex(s, ":")+1:]) }

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s: %g, published %g, more than %g%% apart", what, got, want, 100*tolerance)
	}
}

// TestJumpLabels: what the calibration was derived from comes out of it. The
// figures have two digits, values four: half a percent.
// Source: x86/jump_label: Bound IPIs sent when updating a static key, v6,
// 2019-06-12: 56 entries, 23 receivers.
func TestJumpLabels(t *testing.T) {
	c := builtin("jump-label-24").Costs
	within(t, "one by one", c.Flip(56, 56, 23), 57e6, 0.005)
	within(t, "batched", c.Flip(56, 1, 23), 1.4e6, 0.005)
	within(t, "handler, 1 entry", 2*c.Reference+c.Comparison, 45, 0.005)
	// A binary search finds 1, 2, 4, 8 and 16 of 56 entries with one to five
	// comparisons, and the last 25 with six.
	mean := float64(1*1+2*2+4*3+8*4+16*5+25*6) / 56
	within(t, "handler, 56 entries", 2*c.Reference+c.Comparison*mean, 180, 0.005)
}

// TestPerCPUReferences: the same for 4334336e769b's host of 480 threads, by its
// batches of 2 and 164 entries with a counter for each CPU.
func TestPerCPUReferences(t *testing.T) {
	c := builtin("refcount-480").Costs
	within(t, "2 entries", c.Flip(2, 1, 479), 519e3, 0.005)
	within(t, "164 entries", c.Flip(164, 1, 479), 702e3, 0.005)
}

// TestBroadcast: the same for the guest of 4180bf1b655a: 100,000 rounds to one target
// and to all other 79, less the dry run.
func TestBroadcast(t *testing.T) {
	c := builtin("kvm-80").Costs
	within(t, "one target", c.Round(1), (251301666-2392199)/1e5, 0.005)
	within(t, "79 targets", c.Round(79), (9282161150-2392199)/1e5, 0.005)
}

// TestDeferral: getpid before and after, exactly as published (v7, 2025-11-14).
func TestDeferral(t *testing.T) {
	for name, want := range map[string][2]float64{"e5-2699": {770, 1340}, "e7-8890": {1040, 1320},
		"gold-6248": {270, 273}} {
		c := builtin(name).Costs
		if before := c.UserEntry + c.UserExit; before != want[0] || before+c.DeferralEntry != want[1] {
			t.Errorf("%s: %g and %g, want %v", name, before, before+c.DeferralEntry, want)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		arch string
		n    int
		want string
	}{{"x86_64", 1, "vm-2"}, {"x86_64", 16, "jump-label-24"}, {"x86_64", 4096, "refcount-480"}, {"arm64", 10,
		"m1"}, {"riscv64", 1, "sg2042"}} {
		if got := Nearest(c.arch, c.n); got == nil || got.Name != c.want {
			t.Errorf("%s with %d CPUs: %v, want %s", c.arch, c.n, got, c.want)
		}
	}
	if c := Nearest("s390x", 4); c != nil {
		t.Errorf("s390x: %s", c.Name)
	}
}

func TestRanges(t *testing.T) {
	for _, r := range Ranges() {
		if !(0 < r.Low && r.Low <= r.High) || len(r.Sources) == 0 {
			t.Errorf("%+v", r)
		}
	}
	if r := Ranges()[0]; r.Name != "round" || len(r.Sources) != 5 || len(Ranges()) != 9 {
		t.Errorf("%d ranges, the first is %+v", len(Ranges()), r)
	}
	low, high := Ranges()[0].Low, Ranges()[0].High
	if low != 2513 || math.Abs(high-1.4e6/3) > 500 { // 251301666 ns / 100,000, and 1.4 ms / 3
		t.Errorf("a round takes %g to %g ns", low, high)
	}
	for _, name := range []string{"jump-label-24", "refcount-480", "kvm-80"} {
		c := builtin(name)
		if r := c.Costs.Round(c.CPUs - 1); r < low || r > high {
			t.Errorf("%s: a round of %g ns lies outside", name, r)
		}
	}
}

// TestDocument: docs/calibrations.md has a row for each built-in calibration.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/calibrations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Builtins() {
		if row := fmt.Sprintf("| `%s` | %d, %s | ", c.Name, c.CPUs, c.Arch); !strings.Contains(string(text), row) {
			t.Errorf("no row %s", row)
		}
	}
	if count := fmt.Sprintf("%d quantities", len(Quantities)); !strings.Contains(string(text), count) {
		t.Errorf("it does not say %s", count)
	}
}

// TestBasesAreDocumented: docs/calibrations.md says how many quantities rest on what.
func TestBasesAreDocumented(t *testing.T) {
	n, all := map[Basis]int{}, 0
	for _, c := range Builtins() {
		for _, e := range c.Entries {
			n[e.Basis]++
			all++
		}
	}
	doc, err := os.ReadFile("../../docs/calibrations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("Of the %d quantities of the ten, %d are measured, %d published, %d derived from published or "+
		"measured ones, and %d assumed", all, n[Measured], n[Published], n[Derived], n[Assumed])
	if text := strings.Join(strings.Fields(string(doc)), " "); !strings.Contains(text, want) || len(Builtins()) != 10 {
		t.Errorf("it does not say: %s", want)
	}
}
