// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"slices"
	"testing"
)

// TestLayouts: each instruction set has its layouts by name, the usual one first,
// and each of them has the same.
func TestLayouts(t *testing.T) {
	for arch, want := range map[string][]string{
		"x86_64": {"plain"}, "arm64": {"call-ops", "bti", "plain"}, "riscv64": {"call-ops", "plain"},
	} {
		usual, err := ParseArch(arch)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range LayoutNames() {
			a, err := WithLayout(usual, name)
			if (err == nil) != slices.Contains(want, name) {
				t.Errorf("%s %s: %v", arch, name, err)
			}
			if err == nil && (a.Traits().Layout != name || a.Traits().Name != arch || len(Layouts(a)) != len(want)) {
				t.Errorf("%d: %+v", i, a.Traits())
			}
		}
		if Layouts(usual)[0] != usual || usual.Traits().Layout != want[0] {
			t.Errorf("%s: usually %s", arch, usual.Traits().Layout)
		}
	}
}
