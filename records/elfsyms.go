// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// elfSymbols are the symbols of one of a file's tables, without the first one, which is none.
type elfSymbols struct {
	all  []elf.Symbol
	base []uint64 // of each section, in unlinked files; else nil
}

// readSymbols reads the symbol table, or the dynamic one of a stripped file.
func (e *elfFile) readSymbols() (err error) {
	if e.syms, err = e.symbolsOf(elf.SHT_SYMTAB); err == nil && e.f.SectionByType(elf.SHT_SYMTAB) == nil {
		e.syms, err = e.symbolsOf(elf.SHT_DYNSYM)
	}
	return err
}

// symbolsOf reads one of the two tables. The file may have none.
func (e *elfFile) symbolsOf(table elf.SectionType) (s elfSymbols, err error) {
	if s.all, err = e.f.Symbols(); table == elf.SHT_DYNSYM {
		s.all, err = e.f.DynamicSymbols()
	}
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return s, e.fail(nil, "symbols: %v", err)
	}
	if e.f.Type == elf.ET_REL {
		s.base = e.base
	}
	return s, nil
}

// value is the address of a symbol by its number, which counts the first one.
func (s *elfSymbols) value(i uint32) (addr uint64, ok bool) {
	if i == 0 || uint64(i) > uint64(len(s.all)) {
		return 0, false
	}
	y := &s.all[i-1]
	switch {
	case y.Section == elf.SHN_ABS:
		return y.Value, true
	case y.Section == elf.SHN_UNDEF || y.Section >= elf.SHN_LORESERVE:
		return 0, false
	case s.base == nil:
		return y.Value, true
	case int(y.Section) >= len(s.base):
		return 0, false
	}
	return s.base[y.Section] + y.Value, true
}

// find is the address of the symbol of that name.
func (s *elfSymbols) find(name string) (uint64, bool) {
	i := slices.IndexFunc(s.all, func(y elf.Symbol) bool { return y.Name == name })
	return s.value(uint32(i + 1))
}

// functions are the functions, those first that scripts/kallsyms.c prefers of several names of
// one address: not a weak one, then fewest leading underscores, then the first in the file.
func (s *elfSymbols) functions() *vmlinux.Symbols {
	var all []vmlinux.Symbol
	for i := range s.all {
		y := &s.all[i]
		kind := elf.ST_TYPE(y.Info)
		addr, ok := s.value(uint32(i + 1))
		if !ok || y.Name == "" || kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC {
			continue
		}
		nm := byte('T')
		if elf.ST_BIND(y.Info) == elf.STB_WEAK {
			nm = 'W'
		}
		all = append(all, vmlinux.Symbol{Addr: addr, Type: nm, Name: y.Name})
	}
	slices.SortStableFunc(all, func(a, b vmlinux.Symbol) int {
		lines := func(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(lines(a.Name), lines(b.Name)))
	})
	return vmlinux.NewSymbols("", all)
}

// code is the file's text, as if it were a kernel's.
func (e *elfFile) code() (text, error) {
	release, _, _ := strings.Cut(e.modinfo("vermagic"), " ") // that a module was built for
	k := &vmlinux.Kernel{Memory: &vmlinux.Memory{}, Symbols: e.syms.functions(), Release: release}
	for i, sec := range e.f.Sections {
		const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
		if sec.Type == elf.SHT_NOBITS || sec.Flags&(code|elf.SHF_COMPRESSED) != code {
			continue
		}
		b, err := e.bytes(sec)
		if err != nil {
			return text{}, err
		}
		k.Segments = append(k.Segments, vmlinux.Segment{Addr: e.base[i], Data: b})
	}
	return text{k}, nil
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
