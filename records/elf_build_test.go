// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// elfBuild writes 64-bit little-endian ELF files for tests: what compilers for
// other architectures would make, and broken ones.
type elfBuild struct {
	machine elf.Machine
	kind    elf.Type
	secs    []elfSec
	syms    []elf.Sym64
	symbols elf.SectionType // SHT_SYMTAB unless set
	strtab  bytes.Buffer
}

type elfSec struct {
	name  string
	kind  elf.SectionType
	flags elf.SectionFlag
	addr  uint64
	data  []byte
	link  int // 0 in relocations: the symbols
	info  int
	align uint64
}

// section adds a section and returns its number.
func (b *elfBuild) section(s elfSec) int {
	b.secs = append(b.secs, s)
	return len(b.secs)
}

// symbol adds a symbol and returns its number.
func (b *elfBuild) symbol(name string, kind elf.SymType, bind elf.SymBind, sec int, value uint64) int {
	if b.strtab.Len() == 0 {
		b.strtab.WriteByte(0)
	}
	off := b.strtab.Len()
	b.strtab.WriteString(name + "\x00")
	b.syms = append(b.syms, elf.Sym64{
		Name: uint32(off), Info: elf.ST_INFO(bind, kind), Shndx: uint16(sec), Value: value,
	})
	return len(b.syms)
}

func (b *elfBuild) function(name string, sec int, value uint64) {
	b.symbol(name, elf.STT_FUNC, elf.STB_GLOBAL, sec, value)
}

// bytes lays the file out: header, contents, section headers.
func (b *elfBuild) bytes(t testing.TB) []byte {
	t.Helper()
	secs := append([]elfSec{{}}, b.secs...)
	if len(b.syms) > 0 {
		kind := b.symbols
		if kind == 0 {
			kind = elf.SHT_SYMTAB
		}
		for i := range secs {
			if secs[i].kind == elf.SHT_RELA && secs[i].link == 0 {
				secs[i].link = len(secs)
			}
		}
		secs = append(secs,
			elfSec{name: ".symtab", kind: kind, data: encode(t, append([]elf.Sym64{{}}, b.syms...)), link: len(secs) + 1},
			elfSec{name: ".strtab", kind: elf.SHT_STRTAB, data: b.strtab.Bytes()})
	}
	names := []byte{0}
	offs := make([]int, len(secs)+1)
	for i, s := range append(secs, elfSec{name: ".shstrtab"}) {
		offs[i] = len(names)
		names = append(append(names, s.name...), 0)
	}
	secs = append(secs, elfSec{name: ".shstrtab", kind: elf.SHT_STRTAB, data: names})
	body := make([]byte, binary.Size(elf.Header64{}))
	var headers []elf.Section64
	for i, s := range secs {
		headers = append(headers, elf.Section64{
			Name: uint32(offs[i]), Type: uint32(s.kind), Flags: uint64(s.flags), Addr: s.addr,
			Off: uint64(len(body)), Size: uint64(len(s.data)), Link: uint32(s.link), Info: uint32(s.info), Addralign: s.align,
		})
		body = append(body, s.data...)
	}
	h := elf.Header64{
		Type: uint16(b.kind), Machine: uint16(b.machine), Version: 1,
		Shoff: uint64(len(body)), Ehsize: 64, Shentsize: 64, Shnum: uint16(len(secs)), Shstrndx: uint16(len(secs) - 1),
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	copy(body, encode(t, h))
	return append(body, encode(t, headers)...)
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := binary.Write(&buf, binary.LittleEndian, v); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func words(v ...uint64) []byte {
	out := []byte{}
	for _, x := range v {
		out = binary.LittleEndian.AppendUint64(out, x)
	}
	return out
}

// insns are 32-bit instructions.
func insns(v ...uint32) []byte {
	out := []byte{}
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, x)
	}
	return out
}

// rela is one relocation.
func rela(offset uint64, kind uint32, sym int, addend uint64) []byte {
	return words(offset, uint64(sym)<<32|uint64(kind), addend)
}

const (
	codeFlags = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	dataFlags = elf.SHF_ALLOC | elf.SHF_WRITE
)

// text adds a section of code.
func (b *elfBuild) text(addr uint64, code []byte) int {
	return b.section(elfSec{name: ".text", kind: elf.SHT_PROGBITS, flags: codeFlags, addr: addr, data: code, align: 16})
}

// entries adds a section of entries.
func (b *elfBuild) entries(addr uint64, v ...uint64) int {
	return b.section(elfSec{name: secPatchable, kind: elf.SHT_PROGBITS, flags: dataFlags, addr: addr, data: words(v...),
		align: 8})
}
