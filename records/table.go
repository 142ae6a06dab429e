// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"strconv"
)

// Addr is a virtual address of kernel text.
type Addr uint64

// String prints the address the way the kernel's own lists do, with 0x in
// front so that it can be pasted into other tools.
func (a Addr) String() string { return "0x" + strconv.FormatUint(uint64(a), 16) }

// Group is a run of records that is sorted inside: records [First, Last) of
// its table. The kernel keeps one per block of pages (struct ftrace_page,
// kernel/trace/ftrace.c); groups are not sorted among themselves.
type Group struct{ First, Last int }

// Len is the number of records in the group.
func (g Group) Len() int { return g.Last - g.First }

// Table is a kernel's patchable call sites in the order in which the kernel
// walks them (for_ftrace_rec_iter). It is immutable once built, so that many
// readers may share it.
type Table struct {
	name    string
	arch    string
	addrs   []Addr
	lengths []uint8 // of sites; nil where no record has one of its own
	groups  []Group
	symbols symbols
	modules modules
}

// Name is what the table was asked for by: a built-in name, a path, a gen: spec.
func (t *Table) Name() string { return t.name }

// Arch is the architecture that the source declares, or "" where it does not
// say (address lists, CSV, generated tables).
func (t *Table) Arch() string { return t.arch }

// Len is the number of records.
func (t *Table) Len() int { return len(t.addrs) }

// Addr is the address of record i.
func (t *Table) Addr(i int) Addr { return t.addrs[i] }

// Length is how many bytes of record i's site are patched, 0 for as many as the
// instruction set's usual ones.
func (t *Table) Length(i int) int {
	if t.lengths == nil {
		return 0
	}
	return int(t.lengths[i])
}

// HasLengths tells whether any record has a length of its own.
func (t *Table) HasLengths() bool { return t.lengths != nil }

// Addrs are the addresses of all records in table order. Shared: do not write.
func (t *Table) Addrs() []Addr { return t.addrs }

// Groups are the groups in table order. Shared: do not write.
func (t *Table) Groups() []Group { return t.groups }

// Symbol is the function that record i belongs to.
func (t *Table) Symbol(i int) string { return t.symbols.at(i) }

// Module is the module that record i belongs to, "" for the core kernel.
func (t *Table) Module(i int) string { return t.modules.at(i) }

// Describe names record i for error messages: address, symbol, module.
func (t *Table) Describe(i int) string {
	if m := t.Module(i); m != "" {
		return fmt.Sprintf("%s %s [%s]", t.Addr(i), t.Symbol(i), m)
	}
	return fmt.Sprintf("%s %s", t.Addr(i), t.Symbol(i))
}
