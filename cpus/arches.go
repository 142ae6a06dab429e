package cpus

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

var arches = []isa.Arch{x86_64.Arch, arm64.Arch, riscv64.Arch}

// ArchNames lists the instruction sets as --arch spells them.
func ArchNames() []string {
	names := make([]string, len(arches))
	for i, a := range arches {
		names[i] = a.Traits().Name
	}
	return names
}

// ParseArch finds an instruction set.
func ParseArch(s string) (isa.Arch, error) {
	for _, a := range arches {
		if a.Traits().Name == s {
			return a, nil
		}
	}
	return nil, fmt.Errorf("arch %q: not one of %s", s, strings.Join(ArchNames(), ", "))
}
