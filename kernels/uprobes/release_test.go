// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/kernels/published"
)

// TestReadings: what was measured comes out, cell by cell.
func TestReadings(t *testing.T) {
	readings, err := published.UprobeReadings.Read("")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		b, err := Of(r.Release, Insn(slices.Index(InsnNames(), r.Insn)))
		if err != nil {
			t.Fatal(err)
		}
		c := b.Cost(int(r.Sites), int(r.Processes))
		got := map[string]int{"first-hit": c.FirstHit, "disable": c.Disable}[r.Phase]
		if int64(got) != r.Interrupts {
			t.Errorf("%+v: %d", r, got)
		}
	}
}

// TestLines: the table of releases, with N = 7 sites and P = 2 processes; -1: refused,
// -2: nobody knows.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		release      string
		insn         Insn
		hit, disable int
	}{
		{"5.10", Nop5, 0, 7}, {"6.12.48+deb13-amd64", Nop1, 0, 7}, {"6.17.13", Nop5, 0, 7}, {"6.17", Nop10, -1, -1},
		{"6.18", Nop5, 42, 0}, {"7.0.4-rc1", Nop5, 42, 0}, {"7.1", Nop5, 42, 0}, {"7.1.3", Nop5, 42, 0}, {"7.1.3", Nop1, 0, 0},
		{"7.1.4", Nop5, -2, -2}, {"7.1.6", Nop5, -2, -2}, {"7.1.7", Nop5, 42, 42}, {"7.1.13-x", Nop5, 42, 42},
		{"7.1.9", Nop10, -1, -1}, {"7.2", Nop5, 0, 0}, {"7.2", Nop10, 42, 42}, {"7.3.1", Nop10, 42, 42}, {"7.4", Nop10, -2, -2},
		{"7.2-rc3", Other, 0, 0},
	} {
		b, err := Of(c.release, c.insn)
		if err != nil {
			t.Fatal(err)
		}
		got := b.Cost(7, 2)
		switch {
		case b.Refused:
			got = Cost{-1, -1}
		case !b.Known:
			got = Cost{-2, -2}
		}
		if want := (Cost{c.hit, c.disable}); got != want {
			t.Errorf("%s %v: %v, want %v", c.release, c.insn, got, want)
		}
	}
	for _, bad := range []string{"", "seven", "7", "7.", ".7", "7..2", "99999999999999999999.1", "7.1073741824"} {
		if _, err := Of(bad, Nop5); err == nil {
			t.Errorf("%q is a release", bad)
		}
	}
	if _, err := Of("7.2", insns); err == nil {
		t.Error("an instruction that there is not")
	}
}

// TestOfImage: what an image shows comes before its release, where it can be told. Ubuntu's
// 7.0.0-43 was booted: 3 for each site of a nop10 and process, both ways, and 0 for a nop5.
func TestOfImage(t *testing.T) {
	for _, c := range []struct {
		release      string
		nop          int
		insn         Insn
		known        bool
		hit, disable int
	}{
		{"7.0.0-43-generic", 10, Nop10, true, 3, 3}, {"7.0.0-43-generic", 10, Nop5, true, 0, 0},
		{"7.0.0", 5, Nop5, true, 3, 0}, {"7.1.9", 5, Nop5, true, 3, 3}, {"7.1.5", 10, Nop10, true, 3, 3},
		{"6.12.107", 0, Nop5, true, 0, 1}, {"7.2.13", 10, Nop10, true, 3, 3}, {"7.1.5", 5, Nop5, false, 0, 0},
		{"6.17.0", 5, Nop5, false, 0, 0}, {"7.2", 5, Nop5, false, 0, 0}, {"7.2", 0, Nop10, false, 0, 0},
		{"7.4", 10, Nop10, true, 3, 3}, {"7.4", 5, Nop5, false, 0, 0},
	} {
		b, err := OfImage(c.release, c.nop, c.insn)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Cost(1, 1); b.Known != c.known || b.Refused || got != (Cost{c.hit, c.disable}) {
			t.Errorf("%s, a nop of %d, %v: %+v %v", c.release, c.nop, c.insn, b, got)
		}
	}
}
