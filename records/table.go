// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"unsafe"
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

// symbols tells each record's function.
type symbols interface {
	at(i int) string
}

// modules tells each record's module, by number and by name. Number 0 is the
// core kernel, whose name is "".
type modules interface {
	at(i int) string
	id(i int) int
	list() []string // names by number; a number may be unused
}

// blobSymbols keeps all names in one piece, so that ten million of them are two
// allocations: name i ends at ends[i] and starts where its predecessor ends.
type blobSymbols struct {
	blob []byte // not written to once the table is built
	ends []uint32
}

func (s *blobSymbols) at(i int) string {
	var start uint32
	if i > 0 {
		start = s.ends[i-1]
	}
	name := s.blob[start:s.ends[i]]
	return unsafe.String(unsafe.SliceData(name), len(name))
}

// indexSymbols are the names of generated tables, made up when asked for.
type indexSymbols struct{}

func (indexSymbols) at(i int) string { return "fn" + strconv.Itoa(i) }

// runModules stores modules as runs of records: real tables have a few dozen.
type runModules struct {
	names []string
	ends  []uint32 // run r covers records up to ends[r]
	ids   []uint32 // and belongs to module ids[r]
}

func (m *runModules) id(i int) int {
	r := sort.Search(len(m.ends), func(r int) bool { return int(m.ends[r]) > i })
	return int(m.ids[r])
}

func (m *runModules) at(i int) string { return m.names[m.id(i)] }
func (m *runModules) list() []string  { return m.names }

// rangeModules are the modules of generated tables: everything from starts[k]
// on, up to the next start, is module k+1. Whatever the order of the records,
// their addresses tell their modules.
type rangeModules struct {
	addrs  []Addr
	starts []Addr // ascending
	names  []string
}

func (m *rangeModules) id(i int) int {
	a := m.addrs[i]
	return sort.Search(len(m.starts), func(k int) bool { return m.starts[k] > a })
}

func (m *rangeModules) at(i int) string { return m.names[m.id(i)] }
func (m *rangeModules) list() []string  { return m.names }

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

// Stats describe a table.
type Stats struct {
	Records       int
	Groups        int
	Modules       int // distinct modules
	ModuleRecords int // records that live in modules
	OrderBreaks   int // records whose address is below their predecessor's

	// Distances between neighbours in the order of addresses, in bytes. They
	// are 0 with fewer than two records; the largest is often the hole between
	// the core kernel and its modules.
	SpacingMin, SpacingMedian, SpacingMax uint64

	Span       uint64 // bytes from the lowest to the highest address
	Misaligned int    // records whose address is not 4 modulo 8, where functions aligned to 8 bytes put it
}

// ModuleShare is the share of records that live in modules, from 0 to 1.
func (s Stats) ModuleShare() float64 { return share(s.ModuleRecords, s.Records) }

// MisalignedShare is the share of misaligned records, from 0 to 1.
func (s Stats) MisalignedShare() float64 { return share(s.Misaligned, s.Records) }

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// Stats counts.
func (t *Table) Stats() Stats {
	s := Stats{Records: t.Len(), Groups: len(t.groups)}
	seen := make([]bool, len(t.modules.list()))
	for i, a := range t.addrs {
		if i > 0 && a < t.addrs[i-1] {
			s.OrderBreaks++
		}
		if a%8 != 4 {
			s.Misaligned++
		}
		if m := t.modules.id(i); m != 0 {
			s.ModuleRecords++
			if !seen[m] {
				seen[m] = true
				s.Modules++
			}
		}
	}
	if t.Len() < 2 {
		return s
	}
	asc := t.ascending()
	s.Span = uint64(asc[len(asc)-1] - asc[0])
	gaps := make([]Addr, len(asc)-1)
	for i := range gaps {
		gaps[i] = asc[i+1] - asc[i]
	}
	slices.Sort(gaps)
	s.SpacingMin, s.SpacingMax = uint64(gaps[0]), uint64(gaps[len(gaps)-1])
	s.SpacingMedian = uint64(gaps[len(gaps)/2])
	return s
}

// CheckSites verifies that sites of that many bytes, one at each record, do not
// overlap.
func (t *Table) CheckSites(siteLen int) error {
	asc := t.ascending()
	for k := 1; k < len(asc); k++ {
		if gap := asc[k] - asc[k-1]; gap < Addr(max(siteLen, 0)) {
			i, j := slices.Index(t.addrs, asc[k-1]), slices.Index(t.addrs, asc[k])
			return fmt.Errorf("records %s: %s and %s are %d bytes apart, and a site has %d",
				t.name, t.Describe(i), t.Describe(j), gap, siteLen)
		}
	}
	return nil
}
