// SPDX-License-Identifier: Apache-2.0

package records

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// builtinSums are the SHA-256 sums of the lists as the kernels printed them,
// from sha256sum.
var builtinSums = map[string]string{
	"x86_64-6.12":         "9cba341b1dad7d13b899724715b178f8fb0c967ead907bf2660905538b6cf217",
	"x86_64-6.12-modules": "bc77d393b172c659ec09fec2d8df1ee132b65f9c8ad535bd15766a903235aa52",
	"arm64-6.12":          "8f18109ee050ad7aec005204f118a9cfb32912c62adcdf8c0db66fab53650158",
	"riscv64-7.2":         "a6b51435b491cccf1c7bb6e9e55049ece48a99c6926b4f73bd5a719aa7bec7f8",
}

func TestBuiltins(t *testing.T) {
	if len(Builtins()) != len(builtinSums) {
		t.Errorf("%d built-in tables, %d sums", len(Builtins()), len(builtinSums))
	}
	for _, b := range Builtins() {
		t.Run(b.Name, func(t *testing.T) {
			tab := mustOpen(t, b.Name, Options{})
			checkTable(t, tab)
			sum := sha256.New()
			if err := WriteAddrs(sum, tab); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%x", sum.Sum(nil)); got != builtinSums[b.Name] {
				t.Errorf("sum %s, want %s", got, builtinSums[b.Name])
			}
			st := tab.Stats()
			if st.Records != b.Records || st.Modules != b.Modules || tab.Arch() != b.Arch || tab.Name() != b.Name {
				t.Errorf("%+v: %s %s %+v", b, tab.Name(), tab.Arch(), st)
			}
			if err := tab.CheckSites(5); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBuiltinGroups(t *testing.T) {
	for name, want := range map[string][]Group{
		"x86_64-6.12": {{0, 32768}, {32768, 40960}, {40960, 42757}},
		"arm64-6.12":  {{0, 32768}, {32768, 48048}},
		"riscv64-7.2": {{0, 32768}, {32768, 40960}, {40960, 41845}},
	} {
		if d := cmp.Diff(want, mustOpen(t, name, Options{}).Groups()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	mods := mustOpen(t, "x86_64-6.12-modules", Options{}).Groups()[3:]
	var sizes []int
	for _, g := range mods {
		sizes = append(sizes, g.Len())
	}
	// ext4, last, has 968 records on 4 pages.
	if d := cmp.Diff([]int{15, 190, 2, 51, 48, 45, 121, 20, 2, 82, 143, 968}, sizes); d != "" {
		t.Error(d)
	}
}

func TestDefaultFor(t *testing.T) {
	for _, arch := range Arches {
		b, ok := FindBuiltin(DefaultFor(arch))
		if !ok || b.Arch != arch || b.Modules != 0 {
			t.Errorf("%s: %+v", arch, b)
		}
	}
	if got := DefaultFor("sparc"); got != "" {
		t.Errorf("sparc: %q", got)
	}
	Builtins()[0].Name = "changed"
	if builtins[0].Name == "changed" {
		t.Error("Builtins hands out the list itself")
	}
}

// TestOpenRefusesAnotherArch: a table says what it is of.
func TestOpenRefusesAnotherArch(t *testing.T) {
	for _, b := range Builtins() {
		for _, arch := range Arches {
			_, err := Open(t.Context(), b.Name, Options{Arch: arch})
			if (err == nil) != (arch == b.Arch) {
				t.Errorf("%s as %s: %v", b.Name, arch, err)
			}
		}
	}
}
