// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
)

// Patch is one record's change.
type Patch struct {
	Site     int32 // index into the machine's sites
	Group    int32 // of the record, for the index that walks over groups
	Addr     records.Addr
	Old, New isa.Text
	Len      uint8 // patchable bytes of the site; 0 for those of all sites
	// The ops that the site's literal names, where sites have one.
	OldOps, NewOps uint64
	// Contended: other patchers change the site too. Whatever instruction is there is taken
	// for the old one, whatever the literal names.
	Contended bool
}

// text is the site's text after the update.
func (p *Patch) text(undo bool) isa.Text {
	if undo {
		return p.Old
	}
	return p.New
}

// Entry is what Shape.Entry tells of the patch on a machine with such code.
func (p *Patch) Entry(code *cpus.Code) (length int, kept bool) {
	n := code.Traits.BreakpointLen
	return p.len(code), p.New.Slice(0, n) == code.Arch.Breakpoint()
}

// len is how many bytes of the site can be patched.
func (p *Patch) len(code *cpus.Code) int {
	if p.Len == 0 {
		return code.Len
	}
	return int(p.Len)
}

// Ops is the ops that the patch leaves in its site's literal; the one before it, if the patch is
// undone.
func (p *Patch) Ops(undo bool) uint64 {
	if undo {
		return p.OldOps
	}
	return p.NewOps
}

// Change is what the patch makes of its site.
func (p *Patch) Change(undo bool) cpus.Change {
	return cpus.Change{From: p.text(!undo), To: p.text(undo)}
}

// Filling is how a batch gets into the vector that handlers search.
type Filling uint8

// The ways. All but the first are defects.
const (
	Sorted   Filling = iota // in the order in which the index searches
	AsQueued                // in the order in which patches were queued, searched or not
	Shifted                 // sorted, each instruction one slot behind its address
)

// Batch builds the published form of a batch: the index that handlers search, and the
// instruction that they act as at each of its slots.
func Batch(code *cpus.Code, k int3.Lookup, f Filling, patches []Patch, undo bool) (int3.Index, []isa.Insn) {
	b, acts := Vector(code, k, f, patches, undo)
	return int3.Build(k, b), acts
}

// Vector is the slots of such an index, and what handlers act as at each.
func Vector(code *cpus.Code, k int3.Lookup, f Filling, patches []Patch, undo bool) (int3.Batch, []isa.Insn) {
	place := func(p *Patch) int3.Place { return int3.Place{Group: p.Group, Addr: p.Addr} }
	slots := make([]*Patch, len(patches))
	for i := range patches {
		slots[i] = &patches[i]
	}
	if f != AsQueued {
		slices.SortStableFunc(slots, func(a, b *Patch) int { return k.Compare(place(a), place(b)) })
	}
	b := int3.Batch{Addrs: make([]records.Addr, len(slots))}
	acts := make([]isa.Insn, len(slots))
	for i, p := range slots {
		b.Addrs[i] = p.Addr
		holds := p
		if f == Shifted {
			holds = slots[(i+len(slots)-1)%len(slots)]
		}
		acts[i] = code.Act(int(p.Site), holds.text(undo))
		if i > 0 && p.Group != slots[i-1].Group {
			b.Starts = append(b.Starts, i)
		}
	}
	return b, acts
}
