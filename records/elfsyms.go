// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const symBytes = 24 // of Elf64_Sym: name, info, other, section, value, size

// elfSymbols are a file's symbols. Names stay where they are in the file until
// a record needs one.
type elfSymbols struct {
	section int    // that they come from; -1: there are none
	raw     []byte // Elf64_Sym after Elf64_Sym
	names   []byte
	base    []uint64 // of each section, in unlinked files; else nil
	funcs   []elfFunc
}

// elfFunc is a function: addresses ascend, the preferred name of each is kept.
type elfFunc struct {
	addr uint64
	sym  uint32
}

// readSymbols reads the symbol table, or the dynamic one of a stripped file.
func (e *elfFile) readSymbols() error {
	e.syms.section = -1
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		i := slices.IndexFunc(e.f.Sections, func(s *elf.Section) bool { return s.Type == kind })
		if i < 0 {
			continue
		}
		syms, err := e.symbolsOf(i)
		if err != nil {
			return err
		}
		e.syms = *syms
		e.syms.collect()
		return nil
	}
	return nil
}

// symbolsOf reads the symbols of one section, without gathering functions.
func (e *elfFile) symbolsOf(section int) (*elfSymbols, error) {
	if section == e.syms.section {
		return &e.syms, nil
	}
	if section >= len(e.f.Sections) {
		return nil, e.fail(nil, "symbols in section %d of %d", section, len(e.f.Sections))
	}
	sec := e.f.Sections[section]
	raw, err := e.bytes(sec)
	if err != nil {
		return nil, err
	}
	if len(raw)%symBytes != 0 {
		return nil, e.fail(sec, "%d bytes, not a multiple of %d", len(raw), symBytes)
	}
	if int(sec.Link) >= len(e.f.Sections) {
		return nil, e.fail(sec, "its names are in section %d of %d", sec.Link, len(e.f.Sections))
	}
	names, err := e.bytes(e.f.Sections[sec.Link])
	if err != nil {
		return nil, err
	}
	syms := &elfSymbols{section: section, raw: raw, names: names}
	if e.f.Type == elf.ET_REL {
		syms.base = e.base
	}
	return syms, nil
}

func (s *elfSymbols) len() int { return len(s.raw) / symBytes }

// name is symbol i's name, a part of the file.
func (s *elfSymbols) name(i uint32) []byte {
	off := binary.LittleEndian.Uint32(s.raw[symBytes*int(i):])
	if uint64(off) >= uint64(len(s.names)) {
		return nil
	}
	name := s.names[off:]
	name = name[:min(len(name), MaxLine)]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	return name
}

// value is symbol i's address.
func (s *elfSymbols) value(i uint32) (addr uint64, ok bool) {
	if uint64(i) >= uint64(s.len()) {
		return 0, false
	}
	sym := s.raw[symBytes*int(i):]
	shndx := elf.SectionIndex(binary.LittleEndian.Uint16(sym[6:]))
	addr = binary.LittleEndian.Uint64(sym[8:])
	switch {
	case shndx == elf.SHN_ABS:
		return addr, true
	case shndx == elf.SHN_UNDEF || shndx >= elf.SHN_LORESERVE:
		return 0, false
	case s.base == nil:
		return addr, true
	case int(shndx) >= len(s.base):
		return 0, false
	}
	return s.base[shndx] + addr, true
}

// find is the address of the symbol of that name.
func (s *elfSymbols) find(name string) (uint64, bool) {
	for i := range uint32(s.len()) {
		if string(s.name(i)) == name {
			return s.value(i)
		}
	}
	return 0, false
}

// collect gathers the functions. Of several names of one address it keeps the
// one that scripts/kallsyms.c prefers: not a weak one, then fewest leading
// underscores, then the first in the file.
func (s *elfSymbols) collect() {
	type ranked struct {
		elfFunc
		weak  bool
		lines int // leading underscores
	}
	var all []ranked
	for i := range uint32(s.len()) {
		info := s.raw[symBytes*int(i)+4]
		kind := elf.ST_TYPE(info)
		if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC {
			continue
		}
		addr, ok := s.value(i)
		name := s.name(i)
		if !ok || len(name) == 0 {
			continue
		}
		all = append(all, ranked{
			elfFunc: elfFunc{addr, i},
			weak:    elf.ST_BIND(info) == elf.STB_WEAK,
			lines:   len(name) - len(bytes.TrimLeft(name, "_")),
		})
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		if a.weak != b.weak && a.addr == b.addr {
			if a.weak {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.lines, b.lines))
	})
	for _, f := range all {
		if n := len(s.funcs); n == 0 || s.funcs[n-1].addr != f.addr {
			s.funcs = append(s.funcs, f.elfFunc)
		}
	}
}

// functionAt tells whether a function starts there.
func (s *elfSymbols) functionAt(addr uint64) bool {
	i := s.after(addr)
	return i > 0 && s.funcs[i-1].addr == addr
}

// after is the index of the first function behind addr.
func (s *elfSymbols) after(addr uint64) int {
	return sort.Search(len(s.funcs), func(i int) bool { return s.funcs[i].addr > addr })
}

// appendName appends the name of the function that addr lies in: the nearest
// one at or before it. In stripped files it is sub_ADDRESS.
func (s *elfSymbols) appendName(buf []byte, addr uint64) []byte {
	if i := s.after(addr); i > 0 {
		return append(buf, s.name(s.funcs[i-1].sym)...)
	}
	return strconv.AppendUint(append(buf, "sub_"...), addr, 16)
}

func (e *elfFile) functionAt(addr uint64) bool { return e.syms.functionAt(addr) }

func (e *elfFile) functionAfter(addr uint64) (uint64, bool) {
	i := e.syms.after(addr)
	if i == len(e.syms.funcs) {
		return 0, false
	}
	return e.syms.funcs[i].addr, true
}

func (e *elfFile) word(addr uint64) (uint32, bool) { return e.code.word(addr) }

// release is the one that a module was built for.
func (e *elfFile) release() string {
	release, _, _ := strings.Cut(e.modinfo("vermagic"), " ")
	return release
}

// modinfo is what a module says of itself, "" where it says nothing.
func (e *elfFile) modinfo(what string) string {
	sec := e.f.Section(".modinfo")
	if sec == nil {
		return ""
	}
	data, err := e.bytes(sec)
	if err != nil {
		return ""
	}
	for _, tag := range bytes.Split(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(tag, []byte(what+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// nameOffset is where struct module keeps the name: behind its state and a list
// head (include/linux/module.h), MODULE_NAME_LEN bytes.
const (
	nameOffset = 24
	nameBytes  = 56
)

// moduleName is the name that an unlinked file has as a module: as its
// .modinfo says, or its struct module, or else the file's own.
func (e *elfFile) moduleName() string {
	if name := e.modinfo("name"); name != "" && printable([]byte(name)) {
		return name
	}
	if sec := e.f.Section(".gnu.linkonce.this_module"); sec != nil {
		if data, err := e.bytes(sec); err == nil && len(data) > nameOffset {
			name, _, _ := bytes.Cut(data[nameOffset:min(len(data), nameOffset+nameBytes)], []byte{0})
			if len(name) > 0 && printable(name) {
				return string(name)
			}
		}
	}
	return fileModule(e.file)
}

// fileModule makes a module's name of a path: base name, no endings, no dashes,
// as the kernel's build does (KBUILD_MODNAME).
func fileModule(path string) string {
	base := filepath.Base(path)
	for _, end := range []string{".gz", ".xz", ".ko", ".o"} {
		base = strings.TrimSuffix(base, end)
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '-' {
			return '_'
		}
		return r
	}, base)
}
