// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
)

// Tables is the large page in which all sites lie, as init_mm's page tables have it. It is one entry of 2 MiB, as in the
// zero value, or it is split: the entry leads to a table of 512 entries. __text_poke (arch/x86/kernel/alternative.c) finds
// a module's page by vmalloc_to_page (mm/vmalloc.c), which reads the large page's entry and then the table's.
// cpa_collapse_large_pages (arch/x86/mm/pat/set_memory.c, Linux 6.16) puts one entry in the table's place, has every CPU
// flush its TLB, and frees the table.
//
// Patchers whose walk has read the first entry and not yet the second are kept in sets, one bit a patcher, by what became
// of the table that they are about to read.
type Tables struct {
	Split bool
	Live  uint8 // it is the table in use
	Gone  uint8 // an entry is in its place
	Freed uint8
}

// maskedWord is behind a Walk whose CPU takes no interrupt between the two entries.
const maskedWord = "masked"

// Masks tells whether the patcher holds back its CPU's interrupts. A sender of a round between Collapse and Free
// waits for it then, as lockless walks of user space's page tables have it (gup_fast, mm/gup.c, Linux 7.2).
func (p *Patcher) Masks() bool {
	return p.At < len(p.Plan) && p.Plan[p.At].Op == Walk && p.Plan[p.At].Masked && p.stage == waiting
}

// readEntry reads the large page's entry for a patcher, and tells whether it leads to a table.
func (t *Tables) readEntry(patcher int) bool {
	if t.Split {
		t.Live |= 1 << patcher
	}
	return t.Split
}

// reshape splits the large page, collapses it, or frees the table that was collapsed.
func (t *Tables) reshape(op Op) {
	switch {
	case op == Split:
		t.Split = true
	case op == Collapse && t.Split:
		t.Split, t.Gone, t.Live = false, t.Gone|t.Live, 0
	case op == Free:
		t.Freed, t.Gone = t.Freed|t.Gone, 0
	}
}

// readTable reads the table's entry for a patcher. In a table that was freed there is the entry of any page, or none.
func (t *Tables) readTable(patcher, cpu int) (broken *cpus.Violation) {
	me := uint8(1) << patcher
	if t.Freed&me != 0 {
		broken = &cpus.Violation{Property: cpus.FreedTable, CPU: cpu,
			Why: fmt.Sprintf("patcher %d reads the entry of its page in a page table that was freed", patcher)}
	}
	t.Live, t.Gone, t.Freed = t.Live&^me, t.Gone&^me, t.Freed&^me
	return broken
}
