// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStats(t *testing.T) {
	recs := []Raw{{0x1004, "a", ""}, {0x1014, "b", ""}, {0x1030, "c", ""}, {0x804, "d", "m"}, {0x80c, "e", "m"},
		{0x704, "f", "n"}}
	tab, err := New("x", "", recs)
	if err != nil {
		t.Fatal(err)
	}
	want := Stats{
		Records: 6, Groups: 3, Modules: 2, ModuleRecords: 3, OrderBreaks: 2,
		SpacingMin: 8, SpacingMedian: 0x1c, SpacingMax: 0x7f8, Span: 0x1030 - 0x704, Misaligned: 1,
	}
	got := tab.Stats()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.ModuleShare() != 0.5 || got.MisalignedShare() != 1.0/6 {
		t.Errorf("shares %v %v", got.ModuleShare(), got.MisalignedShare())
	}
	if one, err := New("x", "", recs[:1]); err != nil || one.Stats().Span != 0 || one.Stats().Records != 1 {
		t.Errorf("one record: %+v, %v", one.Stats(), err)
	}
	if (Stats{}).ModuleShare() != 0 {
		t.Error("a share of nothing")
	}

	if err := tab.CheckSites(8); err != nil {
		t.Error(err)
	}
	wantError(t, tab.CheckSites(9), "records x: 0x804 d [m] and 0x80c e [m] are 8 bytes apart, and a site has 9")
}

func TestBuiltinStats(t *testing.T) {
	tab := mustOpen(t, "x86_64-6.12-modules", Options{})
	want := Stats{
		Records: 44444, Groups: 3 + 12, Modules: 12, ModuleRecords: 1687, OrderBreaks: 1,
		SpacingMin: 28, SpacingMedian: 148, SpacingMax: 1045363072, Span: 1060810848, Misaligned: 7479,
	}
	if d := cmp.Diff(want, tab.Stats()); d != "" {
		t.Error(d)
	}
}
