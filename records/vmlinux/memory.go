// SPDX-License-Identifier: Apache-2.0

package vmlinux

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

var le = binary.LittleEndian

// Segment is bytes of the kernel at the address where it is linked.
type Segment struct {
	Addr uint64
	Data []byte
}

func (s Segment) end() uint64 { return s.Addr + uint64(len(s.Data)) }

// Memory is the kernel as it is linked, before it is moved anywhere. A raw image lies at
// 0 until its tables tell where it is linked.
type Memory struct {
	Arch     *Arch
	Form     string // how it was packed, from the outside in: bzImage/xz
	Segments []Segment
}

// raw tells whether the Segments have no addresses yet.
func (m *Memory) raw() bool { return len(m.Segments) == 1 && m.Segments[0].Addr == 0 }

// At is the memory from an address to the end of its segment, nil outside.
func (m *Memory) At(addr uint64) []byte {
	for _, s := range m.Segments {
		if addr >= s.Addr && addr < s.end() {
			return s.Data[addr-s.Addr:]
		}
	}
	return nil
}

// Span is the memory from one address to another, nil where it is not all there.
func (m *Memory) Span(from, to uint64) []byte {
	if b := m.At(from); to >= from && uint64(len(b)) >= to-from {
		return b[:to-from]
	}
	return nil
}

// Pointer is what a place holds, 0 outside.
func (m *Memory) Pointer(addr uint64) uint64 {
	if b := m.At(addr); len(b) >= 8 {
		return le.Uint64(b)
	}
	return 0
}

// MaxName is the longest name that is read: KSYM_NAME_LEN (include/linux/kallsyms.h,
// since Linux 6.1).
const MaxName = 512

// Text is a string that ends with 0, "" where there is none.
func (m *Memory) Text(addr uint64) string {
	b := m.At(addr)
	if i := bytes.IndexByte(b[:min(len(b), MaxName)], 0); i >= 0 {
		return string(b[:i])
	}
	return ""
}

// Contains tells whether the kernel holds a text.
func (m *Memory) Contains(s string) bool {
	return slices.ContainsFunc(m.Segments, func(g Segment) bool { return bytes.Contains(g.Data, []byte(s)) })
}

// Longest is the longest run of entries of so many bytes that all are what is looked for: where it
// begins, and how many.
func (m *Memory) Longest(size int, is func(at uint64, entry []byte) bool) (best uint64, most int) {
	for _, s := range m.Segments {
		for o := 0; o+size <= len(s.Data); {
			n := 0
			for p := o; p+size <= len(s.Data) && is(s.Addr+uint64(p), s.Data[p:]); p += size {
				n++
			}
			if n > most {
				best, most = s.Addr+uint64(o), n
			}
			o += max(8, size*n)
		}
	}
	return best, most
}

// reaches is one past the highest address.
func (m *Memory) reaches() (end uint64) {
	for _, s := range m.Segments {
		end = max(end, s.end())
	}
	return end
}

// Symbol is one name of kallsyms.
type Symbol struct {
	Addr uint64
	Type byte // as nm has it
	Name string
}

// IsText tells whether it names code.
func (s *Symbol) IsText() bool { return s.Type|0x20 == 't' || s.Type|0x20 == 'w' }

// Symbols is the table that a kernel carries for itself.
type Symbols struct {
	Layout string   // of kallsyms: the order of its tables
	All    []Symbol // by address
	Names  map[string][]uint64
	Parts  map[string][]uint64 // code, by the function's name without what a compiler put behind it
}

// NewSymbols makes a table of symbols.
func NewSymbols(layout string, all []Symbol) *Symbols {
	s := &Symbols{Layout: layout, All: all, Names: make(map[string][]uint64, len(all)),
		Parts: make(map[string][]uint64, len(all)/2)}
	s.index()
	return s
}

// index sorts the symbols and finds them by name. A compiler's clones of a function go by the
// function's name too.
func (s *Symbols) index() {
	slices.SortStableFunc(s.All, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	clear(s.Names)
	clear(s.Parts)
	single := make([]uint64, len(s.All)) // what most names have, and made at once
	add := func(to map[string][]uint64, name string, i int) {
		if addrs, several := to[name]; several {
			to[name] = append(addrs, single[i])
		} else {
			to[name] = single[i : i+1 : i+1]
		}
	}
	for i := range s.All {
		y := &s.All[i]
		single[i] = y.Addr
		add(s.Names, y.Name, i)
		if y.IsText() {
			add(s.Parts, Plain(y.Name), i)
		}
	}
}

// Add names an address that kallsyms does not.
func (s *Symbols) Add(name string, addr uint64) { s.Names[name] = append(s.Names[name], addr) }

// shift moves every symbol: a raw image turned out to be linked elsewhere.
func (s *Symbols) shift(by uint64) {
	for i := range s.All {
		s.All[i].Addr += by
	}
	s.index()
}

// Addr is the address of a name, the first one where there are several.
func (s *Symbols) Addr(name string) (uint64, bool) {
	a := s.Names[name]
	if len(a) == 0 {
		return 0, false
	}
	return a[0], true
}

// Has tells whether there is a symbol of a name.
func (s *Symbols) Has(name string) bool { return len(s.Names[name]) > 0 }

// index of the last symbol at or below an address, -1 if there is none.
func (s *Symbols) below(addr uint64) int {
	return sort.Search(len(s.All), func(i int) bool { return s.All[i].Addr > addr }) - 1
}

// After is the first symbol behind an address.
func (s *Symbols) After(addr uint64) *Symbol {
	if i := s.below(addr) + 1; i < len(s.All) {
		return &s.All[i]
	}
	return nil
}

// Starting are the symbols at an address.
func (s *Symbols) Starting(addr uint64) []Symbol {
	end := s.below(addr) + 1
	first := end
	for first > 0 && s.All[first-1].Addr == addr {
		first--
	}
	return s.All[first:end]
}

// Symbol is the first symbol at the last address that is not behind addr, and how far
// addr lies behind it (kallsyms_lookup, kernel/kallsyms.c, takes the first of those at
// one address).
func (s *Symbols) Symbol(addr uint64) (y Symbol, offset uint64, ok bool) {
	i := s.below(addr)
	if i < 0 {
		return Symbol{}, 0, false
	}
	y = s.Starting(s.All[i].Addr)[0]
	return y, addr - y.Addr, true
}

// Limits are the addresses of two symbols, in order.
func (s *Symbols) Limits(first, last string) (from, to uint64, ok bool) {
	from, ok1 := s.Addr(first)
	to, ok2 := s.Addr(last)
	return from, to, ok1 && ok2 && from <= to
}

// Plain is a function's name without what a compiler puts behind it: .isra.0,
// .constprop.0, .part.0, .llvm.123.
func Plain(name string) string {
	base, _, _ := strings.Cut(name, ".")
	return cmp.Or(base, name)
}
