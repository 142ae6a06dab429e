// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// Sections that list patchable entries: one address each, as gcc's
// -mrecord-mcount and recordmcount write them, or as -fpatchable-function-entry
// does. The linker script of a vmlinux puts them into .init.data, between two
// symbols (MCOUNT_REC, include/asm-generic/vmlinux.lds.h).
const (
	secMcount    = "__mcount_loc"
	secPatchable = "__patchable_function_entries"
	symStart     = "__start_mcount_loc"
	symStop      = "__stop_mcount_loc"
)

// elfArch is what reading an architecture's ELF files takes.
type elfArch struct {
	name     string
	absolute uint32                            // relocation of an 8-byte word to symbol + addend
	relative uint32                            // and to load address + addend
	modules  uint64                            // where modules are laid out here, see layout
	record   func(t text, entry uint64) uint64 // from the compiler's mark to the patched address
	pad      func(t text, at uint64) bool      // an indirect branch may land there
	nop      func(t text, at uint64) bool      // what a compiler leaves for a tracer
}

// The module areas are those of a kernel whose image lies where it is linked:
// MODULES_VADDR of x86_64; on arm64 64 MiB below KIMAGE_VADDR, which calls
// reach; on riscv64 2 GiB below the end of an image of 32 MiB
// (arch/*/include/asm/pgtable*.h, memory.h, Linux 6.12).
var elfArches = map[elf.Machine]*elfArch{
	elf.EM_X86_64: {
		name:     "x86_64",
		absolute: uint32(elf.R_X86_64_64), relative: uint32(elf.R_X86_64_RELATIVE),
		modules: 0xffffffffc0000000, record: recordX86, pad: padX86, nop: nopX86,
	},
	elf.EM_AARCH64: {
		name:     "arm64",
		absolute: uint32(elf.R_AARCH64_ABS64), relative: uint32(elf.R_AARCH64_RELATIVE),
		modules: 0xffff80007c000000, record: recordARM64, pad: padARM64, nop: nopARM64,
	},
	elf.EM_RISCV: {
		name:     "riscv64",
		absolute: uint32(elf.R_RISCV_64), relative: uint32(elf.R_RISCV_RELATIVE),
		modules: 0xffffffff02000000, record: recordRISCV, nop: nopRISCV,
		pad: func(text, uint64) bool { return false }, // Linux builds no landing pads into its kernel
	},
}

// elfFile is an ELF file being read.
type elfFile struct {
	file    string
	f       *elf.File
	size    int64 // of the file, which bounds what headers may claim
	arch    *elfArch
	base    []uint64   // section addresses: the file's own, or laid out
	syms    elfSymbols // of the symbol table, or the dynamic one where that was stripped
	dynamic elfSymbols // of that one, once a relocation needs it
}

// fail makes an error about a section, or the whole file with sec nil.
func (e *elfFile) fail(sec *elf.Section, reason string, args ...any) error {
	err := &ParseError{File: e.file, Reason: fmt.Sprintf(reason, args...)}
	if sec != nil {
		err.Value = quoted("section", sec.Name)
	}
	return err
}

// readELF reads the records of an ELF file as a kernel has them right after
// loading it: entries sorted, zeros (padding, discarded functions) left out,
// addresses moved from the entry to the patchable instruction. Functions in
// init sections are there too; a kernel drops them when init is over. An entry
// that is listed twice (identical functions folded by the linker) counts once.
func readELF(ctx context.Context, file string, r io.ReaderAt, size int64, opt Options) (t *Table, err error) {
	// debug/elf is not hardened against hostile files.
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, &ParseError{File: file, Reason: fmt.Sprintf("malformed ELF file: %v", p)}
		}
	}()
	e := &elfFile{file: file, size: size}
	if err := e.open(r, opt); err != nil {
		return nil, err
	}
	module := ""
	if e.f.Type == elf.ET_REL {
		module = e.moduleName()
	}
	e.layout()
	if e.syms, err = e.symbolsOf(elf.SHT_SYMTAB); err == nil && e.f.SectionByType(elf.SHT_SYMTAB) == nil { // a stripped file
		e.syms, err = e.symbolsOf(elf.SHT_DYNSYM)
	}
	if err != nil {
		return nil, err
	}
	entries, err := e.entries()
	if err != nil {
		return nil, err
	}
	code, err := e.code()
	if err != nil {
		return nil, err
	}
	for i, a := range entries {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("read %s: %w", file, ctx.Err())
		}
		entries[i] = e.arch.record(code, a)
	}
	slices.Sort(entries)
	b := newBuilder(file)
	for _, a := range slices.Compact(entries) {
		y, _, ok := code.Symbol(a)
		if !ok { // a stripped file
			y.Name = "sub_" + strconv.FormatUint(a, 16)
		}
		if err := b.add(Addr(a), []byte(y.Name), []byte(module)); err != nil {
			return nil, err
		}
	}
	return b.finishSome(e.arch.name)
}

// open reads the headers and refuses what is not for a known 64-bit machine.
func (e *elfFile) open(r io.ReaderAt, opt Options) error {
	var ident [elf.EI_NIDENT]byte
	if _, err := r.ReadAt(ident[:], 0); err != nil {
		return e.fail(nil, "ELF file cut short")
	}
	if c := elf.Class(ident[elf.EI_CLASS]); c != elf.ELFCLASS64 {
		return e.fail(nil, "a 32-bit ELF file (%v); only 64-bit ones have records here", c)
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return e.fail(nil, "ELF file cut short or malformed: %v", err)
	}
	e.f, e.arch = f, elfArches[f.Machine]
	switch {
	case e.arch == nil || f.ByteOrder != binary.LittleEndian:
		return e.fail(nil, "an ELF file for %v, %v; x86_64, arm64 and riscv64 are understood", f.Machine, f.Data)
	case opt.Arch != "" && opt.Arch != e.arch.name:
		return e.fail(nil, "an ELF file for %s, not for %s", e.arch.name, opt.Arch)
	case f.Type != elf.ET_REL && f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return e.fail(nil, "an ELF file of type %v; programs, libraries, objects and kernel modules have records", f.Type)
	}
	return nil
}

// bytes reads a section's contents.
func (e *elfFile) bytes(sec *elf.Section) ([]byte, error) {
	switch {
	case sec.Type == elf.SHT_NOBITS:
		return nil, e.fail(sec, "has no contents; they were stripped")
	case sec.Flags&elf.SHF_COMPRESSED != 0:
		return nil, e.fail(sec, "is compressed")
	case sec.Offset > uint64(e.size) || sec.FileSize > uint64(e.size)-sec.Offset:
		return nil, e.fail(sec, "%d bytes at offset %#x, but the file ends at %#x: cut short", sec.FileSize, sec.Offset,
			e.size)
	}
	data := make([]byte, sec.FileSize)
	if _, err := io.ReadFull(sec.Open(), data); err != nil {
		return nil, e.fail(sec, "%v", err)
	}
	return data, nil
}

// elfSymbols are the symbols of one of a file's tables, without the first one, which is none.
type elfSymbols struct {
	all  []elf.Symbol
	base []uint64 // of each section, in unlinked files; else nil
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
