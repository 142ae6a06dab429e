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

// LayoutOf is the instruction set with the layout of sites that a table's addresses
// speak for, as far as they tell. The usual one, if the kernel would take all
// records by it. Otherwise, under a protocol that does not rest on literals, one
// without; and under one that does, where most records would be refused, the first
// one that takes more of them: no compiler misaligns most functions of a kernel, so
// it was another kernel. The kernel itself refuses the few records that are left
// ("Misaligned patch-site", ftrace_call_adjust, arch/arm64/kernel/ftrace.c, Linux
// 6.3).
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

// settleLengths finds the instruction set of each site where records have lengths of
// their own. CPUs fetch as many bytes as the longest site has: the bytes behind a
// shorter one never change.
func (j *Job) settleLengths() (err error) {
	if !j.Table.HasLengths() {
		return nil
	}
	j.sized = map[int]isa.Arch{0: j.Arch}
	usual := j.Arch
	for rec := range j.Table.Len() {
		n := j.Table.Length(rec)
		if j.sized[n] != nil {
			continue
		}
		if j.sized[n], err = cpus.WithLength(usual, n); err != nil {
			return fmt.Errorf("record %s: %w", j.Table.Describe(rec), err)
		}
	}
	usualUsed := false
	for rec := 0; rec < j.Table.Len() && !usualUsed; rec++ {
		usualUsed = j.Table.Length(rec) == 0
	}
	longest := 0
	for n, a := range j.sized {
		if fetch := a.Traits().FetchLen; (n > 0 || usualUsed) && fetch > longest {
			longest, j.Arch = fetch, a
		}
	}
	return nil
}

// archOf is the instruction set with sites as long as the record's.
func (j *Job) archOf(rec int) isa.Arch {
	if j.sized == nil {
		return j.Arch
	}
	return j.sized[j.Table.Length(rec)]
}

// entries tell how long the site of each record of the queue is, nil where all are
// alike. None of them becomes a breakpoint.
func (j *Job) entries() func(int) (int, bool) {
	if j.sized == nil {
		return nil
	}
	return func(i int) (int, bool) { return j.archOf(j.queue[i]).Traits().FetchLen, false }
}

// ahead is how far jumps of two bytes go: to a label of the same function.
const ahead = 32

// target is where an enabled site goes to.
func target(s isa.Site, entry records.Addr) records.Addr {
	if s.Len == 2 {
		return s.Addr + records.Addr(s.Len) + ahead
	}
	return entry
}
