// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Symbol is one name of kallsyms.
type Symbol struct {
	Addr uint64
	Type byte // as nm has it
	Name string
}

func (s *Symbol) isText() bool { return s.Type|0x20 == 't' || s.Type|0x20 == 'w' }

// symbols is the table that a kernel carries for itself.
type symbols struct {
	layout string
	all    []Symbol // by address
	names  map[string][]uint64
}

func newSymbols(layout string, all []Symbol) *symbols {
	s := &symbols{layout: layout, all: all, names: make(map[string][]uint64, len(all))}
	s.index()
	return s
}

// index sorts the symbols and finds them by name. What a compiler made of a function
// goes by the function's name too.
func (s *symbols) index() {
	slices.SortStableFunc(s.all, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	clear(s.names)
	for i := range s.all {
		y := &s.all[i]
		s.names[y.Name] = append(s.names[y.Name], y.Addr)
	}
}

// add names an address that kallsyms does not.
func (s *symbols) add(name string, addr uint64) { s.names[name] = append(s.names[name], addr) }

// shift moves every symbol: a raw image turned out to be linked elsewhere.
func (s *symbols) shift(by uint64) {
	for i := range s.all {
		s.all[i].Addr += by
	}
	s.index()
}

// Addr is the address of a name, the first one where there are several.
func (s *symbols) Addr(name string) (uint64, bool) {
	a := s.names[name]
	if len(a) == 0 {
		return 0, false
	}
	return a[0], true
}

// Has tells whether there is a symbol of a name.
func (s *symbols) Has(name string) bool { return len(s.names[name]) > 0 }

// index of the last symbol at or below an address, -1 if there is none.
func (s *symbols) below(addr uint64) int {
	return sort.Search(len(s.all), func(i int) bool { return s.all[i].Addr > addr }) - 1
}

// after is the first symbol behind an address.
func (s *symbols) after(addr uint64) *Symbol {
	if i := s.below(addr) + 1; i < len(s.all) {
		return &s.all[i]
	}
	return nil
}

// starting are the symbols at an address.
func (s *symbols) starting(addr uint64) []Symbol {
	end := s.below(addr) + 1
	first := end
	for first > 0 && s.all[first-1].Addr == addr {
		first--
	}
	return s.all[first:end]
}

// Symbol is the first symbol at the last address that is not behind addr, and how far
// addr lies behind it (kallsyms_lookup, kernel/kallsyms.c, takes the first of those at
// one address).
func (s *symbols) Symbol(addr uint64) (y Symbol, offset uint64, ok bool) {
	i := s.below(addr)
	if i < 0 {
		return Symbol{}, 0, false
	}
	y = s.all[i]
	if same := s.starting(y.Addr); len(same) > 0 {
		y = same[0]
	}
	return y, addr - y.Addr, true
}

// limits are the addresses of two symbols, in order.
func (s *symbols) limits(first, last string) (from, to uint64, ok bool) {
	from, ok1 := s.Addr(first)
	to, ok2 := s.Addr(last)
	return from, to, ok1 && ok2 && from <= to
}

// plain is a function's name without what a compiler puts behind it: .isra.0,
// .constprop.0, .part.0, .llvm.123.
func plain(name string) string {
	base, _, _ := strings.Cut(name, ".")
	return cmp.Or(base, name)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
