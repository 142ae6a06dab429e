// SPDX-License-Identifier: Apache-2.0

package records

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
)

const (
	wordBytes = 8  // of one entry, an address
	relaBytes = 24 // of Elf64_Rela: offset, symbol and type, addend
)

// wordTable is a stretch of addresses in the file: a section, or a part of one.
type wordTable struct {
	sec   *elf.Section
	index int    // of the section
	addr  uint64 // of data[0]
	data  []byte
}

// entries are the addresses that the file lists, relocated and sorted, without
// zeros.
func (e *elfFile) entries() ([]uint64, error) {
	tables, err := e.wordTables()
	if err != nil {
		return nil, err
	}
	if err := e.relocate(tables); err != nil {
		return nil, err
	}
	var entries []uint64
	for _, t := range tables {
		for w := t.data; len(w) > 0; w = w[wordBytes:] {
			if a := binary.LittleEndian.Uint64(w); a != 0 {
				entries = append(entries, a)
			}
		}
	}
	if len(entries) == 0 {
		return nil, e.fail(tables[0].sec,
			"all entries are zero; the relocations that fill them in were stripped, or nothing is patchable")
	}
	slices.Sort(entries)
	return entries, nil
}

// wordTables finds where the entries are.
func (e *elfFile) wordTables() ([]wordTable, error) {
	var tables []wordTable
	for i, sec := range e.f.Sections {
		if sec.Name != secMcount && sec.Name != secPatchable || sec.Type != elf.SHT_PROGBITS {
			continue
		}
		data, err := e.bytes(sec)
		if err != nil {
			return nil, err
		}
		if len(data)%wordBytes != 0 {
			return nil, e.fail(sec, "%d bytes, not a multiple of %d", len(data), wordBytes)
		}
		tables = append(tables, wordTable{sec, i, e.base[i], data})
	}
	if start, ok := e.syms.find(symStart); ok {
		stop, _ := e.syms.find(symStop)
		t, err := e.between(start, stop)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		return nil, e.fail(nil,
			"lists no patchable functions: no section %s or %s and no symbol %s (compile with -fpatchable-function-entry)",
			secMcount, secPatchable, symStart)
	}
	return tables, nil
}

// between is the stretch that a linker script marked with two symbols.
func (e *elfFile) between(start, stop uint64) (wordTable, error) {
	if stop < start || (stop-start)%wordBytes != 0 {
		return wordTable{}, e.fail(nil, "symbols %s %#x and %s %#x do not enclose a table", symStart, start, symStop, stop)
	}
	for i, sec := range e.f.Sections {
		if sec.Flags&elf.SHF_ALLOC == 0 || sec.Type == elf.SHT_NOBITS || start < sec.Addr || start-sec.Addr > sec.Size ||
			stop-sec.Addr > sec.Size {
			continue
		}
		data, err := e.bytes(sec)
		if err != nil {
			return wordTable{}, err
		}
		if stop-sec.Addr <= uint64(len(data)) {
			return wordTable{sec, i, start, data[start-sec.Addr : stop-sec.Addr]}, nil
		}
	}
	return wordTable{}, e.fail(nil, "no section holds the table from %s %#x to %s %#x", symStart, start, symStop, stop)
}

// relocations calls apply for each entry of a section of relocations.
func (e *elfFile) relocations(sec *elf.Section, apply func(offset uint64, kind, sym uint32,
	addend uint64) error) error {
	data, err := e.bytes(sec)
	if err != nil {
		return err
	}
	if len(data)%relaBytes != 0 {
		return e.fail(sec, "%d bytes, not a multiple of %d", len(data), relaBytes)
	}
	le := binary.LittleEndian
	for ; len(data) > 0; data = data[relaBytes:] {
		info := le.Uint64(data[8:])
		if err := apply(le.Uint64(data), uint32(info), uint32(info>>32), le.Uint64(data[16:])); err != nil {
			return err
		}
	}
	return nil
}

// relocate fills in the words. In an unlinked file each is the address of a symbol, mostly a
// section's, plus an addend. A linked file that can be loaded anywhere is taken as if it were loaded
// at the address it is linked to; the words of files without such relocations, or with packed ones
// (.relr.dyn), are right as they stand.
func (e *elfFile) relocate(tables []wordTable) error {
	object := e.f.Type == elf.ET_REL
	for _, rel := range e.f.Sections {
		if rel.Type != elf.SHT_RELA || !object && rel.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		for _, t := range tables {
			start, what := t.addr, "address"
			if object {
				start, what = 0, "offset"
			}
			if object && rel.Info != uint32(t.index) {
				continue
			}
			err := e.relocations(rel, func(offset uint64, kind, sym uint32, addend uint64) error {
				at, inside := offset-start, offset >= start && offset-start < uint64(len(t.data))
				switch {
				case kind == 0 || !inside && !object: // R_*_NONE, or elsewhere
					return nil
				case object && kind != e.arch.absolute:
					return e.fail(rel, "offset %#x: relocation type %d, not the 64-bit address %d", offset, kind, e.arch.absolute)
				case !inside || at%wordBytes != 0:
					return e.fail(rel, "%s %#x is not a word of %s", what, offset, t.sec.Name)
				}
				value, err := e.wordValue(rel, what, offset, kind, sym)
				if err == nil {
					binary.LittleEndian.PutUint64(t.data[at:], value+addend)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// wordValue is what a relocation adds its addend to.
func (e *elfFile) wordValue(rel *elf.Section, what string, offset uint64, kind, sym uint32) (uint64, error) {
	switch kind {
	case e.arch.relative:
		return 0, nil
	case e.arch.absolute:
		syms, err := e.linked(rel)
		if err != nil {
			return 0, err
		}
		value, ok := syms.value(sym)
		if !ok {
			return 0, e.fail(rel, "%s %#x: symbol %d is not defined in this file", what, offset, sym)
		}
		return value, nil
	}
	return 0, e.fail(rel, "address %#x: relocation type %d: want relative (%d) or a 64-bit address (%d)",
		offset, kind, e.arch.relative, e.arch.absolute)
}

// linked are the symbols that a section of relocations names.
func (e *elfFile) linked(rel *elf.Section) (*elfSymbols, error) {
	if i := int(rel.Link); i >= len(e.f.Sections) || e.f.Sections[i].Type != elf.SHT_DYNSYM {
		return &e.syms, nil
	}
	if e.dynamic.all == nil {
		var err error
		if e.dynamic, err = e.symbolsOf(elf.SHT_DYNSYM); err != nil {
			return nil, err
		}
	}
	return &e.dynamic, nil
}

// dropped are sections that the kernel does not keep (setup_load_info,
// rewrite_section_headers, kernel/module/main.c).
var dropped = map[string]bool{".modinfo": true, "__versions": true}

// layout gives every section its address. Linked files say it themselves. An
// unlinked file, such as a module, is laid out as the kernel does
// (layout_sections, kernel/module/main.c): code, read-only data, data, then the
// same for init sections, each kind in the order of the file, each section on its
// alignment and each kind on a page of its own. The first address is an
// assumption: the kernel takes what is free.
func (e *elfFile) layout() {
	e.base = make([]uint64, len(e.f.Sections))
	for i, sec := range e.f.Sections {
		e.base[i] = sec.Addr
	}
	if e.f.Type != elf.ET_REL {
		return
	}
	const flags = elf.SHF_ALLOC | elf.SHF_EXECINSTR | elf.SHF_WRITE
	next := e.arch.modules
	for _, init := range []bool{false, true} {
		for _, kind := range []elf.SectionFlag{
			elf.SHF_ALLOC | elf.SHF_EXECINSTR, elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE,
		} {
			next = alignUp(next, PageBytes)
			for i, sec := range e.f.Sections {
				has := sec.Flags & flags
				if has&elf.SHF_EXECINSTR != 0 {
					has &^= elf.SHF_WRITE
				}
				if has != kind || dropped[sec.Name] || strings.HasPrefix(sec.Name, ".init") != init {
					continue
				}
				next = alignUp(next, max(sec.Addralign, 1))
				e.base[i] = next
				next += sec.Size
			}
		}
	}
}

// alignUp rounds up to a multiple of align; an align that is no power of two counts as 1.
func alignUp(a, align uint64) uint64 {
	if align&(align-1) != 0 {
		return a
	}
	return (a + align - 1) &^ (align - 1)
}
