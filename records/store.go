// SPDX-License-Identifier: Apache-2.0

package records

import (
	"sort"
	"strconv"
	"unsafe"
)

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
