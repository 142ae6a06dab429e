// SPDX-License-Identifier: Apache-2.0

package records

import "math/bits"

// Sizes of a record and of a block of records on 64-bit kernels with 4 KiB pages: struct dyn_ftrace
// in include/linux/ftrace.h is an address and a word of flags, ENTRIES_PER_PAGE in
// kernel/trace/ftrace.c the quotient.
const (
	RecordBytes    = 16
	PageBytes      = 4096
	RecordsPerPage = PageBytes / RecordBytes
)

// MaxGroupPages is the largest block of pages that the page allocator hands
// out: 1 << MAX_PAGE_ORDER, include/linux/mmzone.h. A request for more fails,
// and ftrace_allocate_records halves it until it succeeds.
const MaxGroupPages = 1 << 10

// Pages is how many pages the kernel takes for a load unit of that many
// records: the core kernel, or one module.
func Pages(records int) int {
	return (records + RecordsPerPage - 1) / RecordsPerPage
}

// GroupPages cuts a load unit's pages into groups the way the kernel does:
// each group takes the largest power of two that is left, 134 = 128 + 4 + 2
// (ftrace_allocate_pages and ftrace_allocate_records, kernel/trace/ftrace.c,
// Linux 5.12 and later).
func GroupPages(pages int) []int {
	var groups []int
	for pages > 0 {
		g := min(1<<(bits.Len(uint(pages))-1), MaxGroupPages)
		groups = append(groups, g)
		pages -= g
	}
	return groups
}

// GroupSizes says how many records each group of a load unit holds, when
// groups of that many pages in total are filled in order. Groups that stay
// empty are left out. Fewer pages than the records need count as Pages(records).
func GroupSizes(records, pages int) []int {
	var sizes []int
	for _, p := range GroupPages(max(pages, Pages(records))) {
		if records == 0 {
			break
		}
		n := min(p*RecordsPerPage, records)
		sizes = append(sizes, n)
		records -= n
	}
	return sizes
}

// kernelGroups cuts a whole table into groups. A load unit is a maximal run of
// ascending records of one module: the kernel sorts a unit when it loads it, so
// a descent tells that the next one starts. The first unit of the core kernel
// gets corePages where that is known; 0 means as many as it needs.
func kernelGroups(addrs []Addr, mods modules, corePages int) []Group {
	var groups []Group
	for first := 0; first < len(addrs); {
		mod := mods.id(first)
		last := first + 1
		for last < len(addrs) && addrs[last] > addrs[last-1] && mods.id(last) == mod {
			last++
		}
		pages := 0
		if first == 0 && mod == 0 {
			pages = corePages
		}
		for _, n := range GroupSizes(last-first, pages) {
			groups = append(groups, Group{first, first + n})
			first += n
		}
	}
	return groups
}
