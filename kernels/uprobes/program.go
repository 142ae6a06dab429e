// SPDX-License-Identifier: Apache-2.0

// Package uprobes says which interrupts a probe in a program causes on x86-64. Since Linux
// 6.18 the kernel replaces the breakpoint of a uprobe or a USDT probe by a call when a
// process first hits it. Each replacement is three rounds to all CPUs, and the probed
// program sends them.
//
//   - Program (program.go) reads a program's USDT probes and the instruction at each.
//   - Behaviour (release.go) says what a kernel release does with a site; Cost adds up
//     sites and processes.
package uprobes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/internal/inputs"
)

// Insn is the kind of instruction at a probe's site, as far as the probe's cost depends on it.
type Insn uint8

// The instructions.
const (
	Other Insn = iota // such as push %rbp: the probe stays a breakpoint
	Nop1              // 90: likewise; sys/sdt.h of systemtap leaves it
	Nop5              // 0f 1f 44 00 00: can become a call
	Nop10             // 66 2e 0f 1f 84 00 00 00 00 00: can become lea and call
	insns
)

var insnNames = [insns]string{"other", "nop1", "nop5", "nop10"}

func (i Insn) String() string {
	if i < insns {
		return insnNames[i]
	}
	return fmt.Sprintf("Insn(%d)", uint8(i))
}

// InsnNames lists the names of all instructions.
func InsnNames() []string { return insnNames[:] }

// bytesOf is how the instructions are written; Nop5 is x86_nops[5] and Nop10 is the
// successor's (arch/x86/include/asm/nops.h; tip ba2bfc97b462, linux-next
// 554ba38456da).
var bytesOf = [insns][]byte{
	Nop1:  {0x90},
	Nop5:  {0x0f, 0x1f, 0x44, 0x00, 0x00},
	Nop10: {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
}

// Len is how many bytes the instruction takes; 0 where that is not known.
func (i Insn) Len() int { return len(bytesOf[i]) }

// insnAt tells which instruction some text begins with.
func insnAt(text []byte) Insn {
	for i := Nop1; i < insns; i++ {
		if bytes.HasPrefix(text, bytesOf[i]) {
			return i
		}
	}
	return Other
}

// pageSize is that of x86-64, in bytes.
const pageSize = 4096

// crosses tells whether some bytes lie on two pages. Those are not replaced: "We can't
// do cross page atomic writes yet" (arch/x86/kernel/uprobes.c, can_optimize, Linux
// 6.18).
func crosses(at uint64, n int) bool { return at%pageSize+uint64(n) > pageSize }

// Site is one place where a program can be probed.
type Site struct {
	Provider, Name string // of the USDT probe
	Addr           uint64 // where the program is linked
	Offset         uint64 // in the file: the kernel's name for the site
	Insn           Insn
	Crosses        bool // the instruction lies on two pages
}

// Program is where a program can be probed, in the order of its notes.
type Program struct {
	File  string
	Sites []Site
}

// maxNotes is how long notes may be, in bytes: those of the largest programs take
// some hundred thousand.
const maxNotes = 64 << 20

// ReadProgram reads the USDT probes of an x86-64 program. Errors name the file, and
// what in it cannot be read.
func ReadProgram(file string) (*Program, error) {
	f, err := inputs.Open(file)
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("program %s: not a regular file", file)
	}
	sites, err := readSites(f)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", file, err)
	}
	return &Program{File: file, Sites: sites}, nil
}

// The section of USDT probes and the one that tells whether the program was moved
// after it was linked (systemtap, includes/sys/sdt.h, note version 3).
const (
	noteSection = ".note.stapsdt"
	baseSection = ".stapsdt.base"
	noteName    = "stapsdt"
	noteType    = 3
)

func readSites(r io.ReaderAt) ([]Site, error) {
	e, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("not an ELF file: %w", err)
	}
	if e.Machine != elf.EM_X86_64 || e.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("is for %v %v: only x86-64 replaces the breakpoints of probes", e.Machine, e.Class)
	}
	notes := e.Section(noteSection)
	if notes == nil {
		return nil, fmt.Errorf("has no USDT probes (no section %s)", noteSection)
	}
	if notes.Type != elf.SHT_NOTE || notes.Size > maxNotes {
		return nil, fmt.Errorf("section %s: %v of %d bytes, want notes of at most %d", noteSection, notes.Type, notes.Size,
			maxNotes)
	}
	data, err := notes.Data()
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", noteSection, err)
	}
	var sites []Site
	for len(data) > 0 {
		var n note
		if n, data, err = nextNote(data); err != nil {
			return nil, fmt.Errorf("section %s, note %d: %w", noteSection, len(sites)+1, err)
		}
		if n.name != noteName || n.kind != noteType {
			continue
		}
		s, err := siteOf(e, n.desc)
		if err != nil {
			return nil, fmt.Errorf("section %s, note %d: %w", noteSection, len(sites)+1, err)
		}
		sites = append(sites, s)
	}
	return sites, nil
}

// note is one note of an ELF file.
type note struct {
	name string
	kind uint32
	desc []byte
}

var errShort = errors.New("is cut off")

// nextNote takes the first note off.
func nextNote(data []byte) (n note, rest []byte, err error) {
	if len(data) < 12 {
		return n, nil, errShort
	}
	order := binary.LittleEndian
	names, descs := uint64(order.Uint32(data)), uint64(order.Uint32(data[4:]))
	n.kind = order.Uint32(data[8:])
	descAt := 12 + (names+3)&^3
	end := descAt + descs
	if end > uint64(len(data)) {
		return n, nil, errShort
	}
	n.name = string(bytes.TrimRight(data[12:12+names], "\x00"))
	n.desc = data[descAt:end]
	return n, data[min((end+3)&^3, uint64(len(data))):], nil
}

// siteOf reads a note: address, base, semaphore, provider, name, arguments.
func siteOf(e *elf.File, desc []byte) (s Site, err error) {
	if len(desc) < 24 {
		return s, errShort
	}
	order := binary.LittleEndian
	s.Addr = order.Uint64(desc)
	if base := e.Section(baseSection); base != nil { // a program that was moved keeps its notes as they were
		s.Addr += base.Addr - order.Uint64(desc[8:])
	}
	words := bytes.SplitN(desc[24:], []byte{0}, 3)
	if len(words) < 3 {
		return s, errShort
	}
	s.Provider, s.Name = string(words[0]), string(words[1])
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 || s.Addr < p.Vaddr || s.Addr-p.Vaddr >= p.Filesz {
			continue
		}
		in := s.Addr - p.Vaddr
		s.Offset = p.Off + in
		text := make([]byte, min(p.Filesz-in, uint64(Nop10.Len())))
		if _, err := p.ReadAt(text, int64(in)); err != nil {
			return s, fmt.Errorf("text of %s:%s at %#x: %w", s.Provider, s.Name, s.Addr, err)
		}
		s.Insn = insnAt(text)
		s.Crosses = crosses(s.Addr, s.Insn.Len())
		return s, nil
	}
	return s, fmt.Errorf("%s:%s at %#x lies in no text that is loaded", s.Provider, s.Name, s.Addr)
}

// Count is how many sites hold an instruction that lies on one page, by instruction. An instruction
// across two pages counts as Other: the breakpoint stays there.
func (p *Program) Count() (n [insns]int) {
	for _, s := range p.Sites {
		if s.Crosses {
			n[Other]++
		} else {
			n[s.Insn]++
		}
	}
	return n
}
