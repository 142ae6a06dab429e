// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
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
		modules: 0xffffffff02000000, record: recordRISCV, pad: padRISCV, nop: nopRISCV,
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
	if err := e.readSymbols(); err != nil {
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
