// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// AutoLayout finds the layout of sites in the table: LayoutOf.
const AutoLayout = "auto"

// LayoutNames lists the layouts.
func LayoutNames() []string { return append([]string{AutoLayout}, cpus.LayoutNames()...) }

// LayoutOf is the instruction set with the layout of sites that a table's addresses
// speak for, as far as they tell. The usual one, if the kernel would take all
// records by it. Otherwise, under a protocol that does not rest on literals, one
// without; and under one that does, where most records would be refused, the first
// one that takes more of them: no compiler misaligns most functions of a kernel, so
// that it was another kernel. What is left are the few records that the kernel
// itself refuses ("Misaligned patch-site", ftrace_call_adjust,
// arch/arm64/kernel/ftrace.c, Linux 6.3).
func LayoutOf(a isa.Arch, p *poke.Protocol, t *records.Table) isa.Arch {
	all := cpus.Layouts(a)
	usual := refused(all[0], p, t)
	if usual == 0 || p.OneStore && 2*usual <= t.Len() {
		return all[0]
	}
	for _, other := range all[1:] {
		if (p.OneStore || !other.Traits().CallOps) && refused(other, p, t) < usual {
			return other
		}
	}
	return all[0]
}

// refused is how many records the kernel would refuse for their alignment.
func refused(a isa.Arch, p *poke.Protocol, t *records.Table) (n int) {
	for i := range t.Len() {
		if _, err := a.Site(t.Addr(i), p.Layout); err != nil {
			n++
		}
	}
	return n
}

// settleLayout replaces the instruction set by the one with the layout that was
// asked for, or found.
func (j *Job) settleLayout() (err error) {
	if j.Layout != "" && j.Layout != AutoLayout {
		j.Arch, err = cpus.WithLayout(j.Arch, j.Layout)
		return err
	}
	found := LayoutOf(j.Arch, j.protocol, j.Table)
	if layout := found.Traits().Layout; layout != cpus.Layouts(found)[0].Traits().Layout {
		j.found = fmt.Sprintf("records %s: by their alignment sites are laid out as %s, not as %s; another layout can be chosen",
			j.Table.Name(), layout, cpus.Layouts(found)[0].Traits().Layout)
	}
	j.Arch = found
	return nil
}
