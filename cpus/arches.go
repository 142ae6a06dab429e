// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/internal/spelling"
)

var arches = []isa.Arch{x86_64.Arch, arm64.Arch, riscv64.Arch}

// layouts are those of each instruction set, the usual one first.
var layouts = map[string][]isa.Arch{
	x86_64.Name: {x86_64.Arch}, arm64.Name: arm64.Layouts, riscv64.Name: riscv64.Layouts,
}

// LayoutNames lists the layouts that sites may have.
func LayoutNames() []string { return []string{isa.LayoutPlain, isa.LayoutCallOps, isa.LayoutBTI} }

// Layouts are the same instruction set with each layout of sites that its kernels
// are built with, the usual one first.
func Layouts(a isa.Arch) []isa.Arch { return layouts[a.Traits().Name] }

// WithLayout is the same instruction set with sites of that layout. It fails where
// no kernel has such sites.
func WithLayout(a isa.Arch, layout string) (isa.Arch, error) {
	var known []string
	for _, l := range Layouts(a) {
		if l.Traits().Layout == layout {
			return l, nil
		}
		known = append(known, l.Traits().Layout)
	}
	return nil, fmt.Errorf("layout %q: %s has sites of layout %s", layout, a.Traits().Name, strings.Join(known, ", "))
}

// ArchNames lists the instruction sets.
func ArchNames() []string { return spelling.Each(arches, archName) }

func archName(a isa.Arch) string { return a.Traits().Name }

// ParseArch finds an instruction set.
func ParseArch(s string) (isa.Arch, error) {
	return spelling.Find("arch", s, arches, archName)
}

// WithLength is the same instruction set with sites of n bytes; sites of other lengths may
// stand beside them. It fails where no kernel patches such sites.
func WithLength(a isa.Arch, n int) (isa.Arch, error) {
	if name := a.Traits().Name; name != x86_64.Name {
		return nil, fmt.Errorf("sites of %d bytes: on %s all have the length of its layout", n, name)
	}
	if sized, ok := x86_64.Sized(n); ok {
		return sized, nil
	}
	return nil, fmt.Errorf("sites of %d bytes: x86_64 patches %v", n, x86_64.Lengths)
}
