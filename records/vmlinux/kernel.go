// SPDX-License-Identifier: Apache-2.0

// Package vmlinux reads a linked Linux kernel: its memory, and the symbol table
// that it carries for itself (kallsyms). [Open] takes every form in which kernels are
// kept: bzImage (vmlinuz of x86), Image (arm64, riscv64), EFI zboot, ELF (vmlinux), each
// packed in any way that package unpack knows.
//
// A file may be anything. Every read is bounded; an error is one line and names the file.
// [Kernel.Notes] lists the tables that were found without their symbols, or not at all.
package vmlinux

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records/unpack"
)

// Kernel is a kernel's memory and its symbols.
type Kernel struct {
	*Memory
	*Symbols
	File    string // as it was asked for
	Hash    string // SHA-256 of the file, in hexadecimal; "" where it was not a file
	Banner  string // Linux version ...
	Release string // as uname -r has it
	Notes   []string
}

// Note adds a note about a table that was found without its name, or not found.
func (k *Kernel) Note(format string, args ...any) {
	k.Notes = append(k.Notes, fmt.Sprintf(format, args...))
}

// HeadBytes is how much of a file tells what it is.
const HeadBytes = 0x1000

// Open reads a kernel from a file. A file of another kind is refused by its first page.
func Open(path string) (*Kernel, error) {
	f, err := inputs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("%s: it is a directory", path)
	}
	k, err := Read(path, f, st.Size())
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, st.Size())); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	k.Hash = hex.EncodeToString(sum.Sum(nil))
	return k, nil
}

// Read reads a kernel of so many bytes. Errors name file, which is not opened.
func Read(file string, r io.ReaderAt, size int64) (*Kernel, error) {
	m, err := readMemory(r, size)
	if err != nil {
		return nil, InFile(file, err)
	}
	k, err := FromMemory(file, m)
	if err != nil {
		return nil, InFile(file, err)
	}
	return k, nil
}

// readMemory unpacks a file. Of an ELF file, which may hold debugging information, only
// the segments are read.
func readMemory(r io.ReaderAt, size int64) (*Memory, error) {
	head := make([]byte, min(size, HeadBytes))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return readELF(r, []string{"ELF"})
	case !isBzImage(head) && !isZboot(head) && rawArch(head) == nil && unpack.Of(head) == nil &&
		!bytes.HasPrefix(head, []byte(magicLZO)):
		return nil, Fail("", "not a kernel image: want vmlinuz, vmlinux, Image or zboot")
	case size > MaxFile:
		return nil, Fail("", "%d MiB, more than %d", size>>20, MaxFile>>20)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), b); err != nil {
		return nil, Fail("file", "%s", unpack.Reason(err))
	}
	return unwrap(b)
}

// FromMemory finds a kernel's release and symbols in its memory.
func FromMemory(file string, m *Memory) (k *Kernel, err error) {
	k = &Kernel{Memory: m, File: file}
	if err := k.banner(); err != nil {
		return nil, err
	}
	k.relocate()
	if k.Symbols, err = ReadSymbols(m); err != nil {
		return nil, err
	}
	if err := k.settle(); err != nil {
		return nil, err
	}
	return k, nil
}

// Looks tells whether a file that begins like this is an ELF file or meant for a kernel image:
// it may be a program for EFI that is none. Packed files are neither yet.
func Looks(head []byte) bool {
	return bytes.HasPrefix(head, []byte(elf.ELFMAG)) || bytes.HasPrefix(head, []byte("MZ")) || isBzImage(head) ||
		rawArch(head) != nil || bytes.HasPrefix(head, []byte(magicLZO))
}

// bannerLine is linux_banner (init/version.c); the format of /proc/version is another
// string like it.
var bannerLine = regexp.MustCompile(`Linux version ([0-9]+\.[0-9]+[0-9A-Za-z.+~_-]*) [^\x00\n%]{0,400}`)

// banner finds what the kernel calls itself.
func (k *Kernel) banner() error {
	for _, s := range k.Segments {
		if m := bannerLine.FindSubmatch(s.Data); m != nil {
			k.Banner, k.Release = string(m[0]), string(m[1])
			return nil
		}
	}
	return Fail(k.Form, "holds no Linux version: not a kernel")
}

// Discarded tells whether an address is thrown away after boot.
func (k *Kernel) Discarded(addr uint64) bool {
	for _, p := range [][2]string{{"__init_begin", "__init_end"}, {"_sinittext", "_einittext"}} {
		if from, to, ok := k.Limits(p[0], p[1]); ok && addr >= from && addr < to {
			return true
		}
	}
	return false
}

// Stays tells whether an address is text that stays (core_kernel_text, kernel/extable.c).
func (k *Kernel) Stays(addr uint64) bool {
	from, to, ok := k.Limits("_stext", "_etext")
	return ok && addr >= from && addr < to && !k.Discarded(addr)
}

// Between is the bytes between two symbols, a multiple of size.
func (k *Kernel) Between(first, last string, size uint64) (from uint64, b []byte) {
	from, to, ok := k.Limits(first, last)
	if !ok {
		k.Note("no %s: the table is not there, or not named", first)
		return 0, nil
	}
	if b = k.Span(from, to-(to-from)%size); b == nil {
		k.Note("%s lies outside of the image", first)
	}
	return from, b
}

// IsText tells whether an address is code: that stays, or that is thrown away after boot.
func (k *Kernel) IsText(addr uint64) bool { return k.Stays(addr) || k.Discarded(addr) }

// Arch is an instruction set whose kernels are read.
type Arch struct {
	Name     string
	Machine  elf.Machine
	Magic    string // at 0x38 of a raw image (Documentation/arch/arm64/booting.rst, riscv/boot-image-header.rst); "" for none
	relative uint64 // type of a relocation that adds the base alone
}

var arches = []*Arch{
	{Name: "x86_64", Machine: elf.EM_X86_64},
	{Name: "arm64", Machine: elf.EM_AARCH64, Magic: "ARM\x64", relative: uint64(elf.R_AARCH64_RELATIVE)},
	{Name: "riscv64", Machine: elf.EM_RISCV, Magic: "RSC\x05", relative: uint64(elf.R_RISCV_RELATIVE)},
}

// OfMachine is the instruction set of an ELF file, nil if it is none of ours.
func OfMachine(m elf.Machine) *Arch {
	return spelling.First(arches, func(a *Arch) bool { return a.Machine == m })
}

// Fail is what is wrong with an image. [InFile] puts the file's name in front of it where
// that is known.
func Fail(what, reason string, args ...any) error {
	return &inputs.ParseError{Value: what, Reason: fmt.Sprintf(reason, args...)}
}

// InFile names the file that an error is about.
func InFile(file string, err error) error {
	var bad *inputs.ParseError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%s: %w", file, err)
	}
	in := *bad
	in.File = file
	return &in
}
