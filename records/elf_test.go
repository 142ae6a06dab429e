// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// open reads the built file, in place and as a packed stream.
func (b *elfBuild) open(t testing.TB, opt Options) *Table {
	t.Helper()
	data := string(b.bytes(t))
	tab := mustOpen(t, tempFile(t, "prog-1.ko", data), opt)
	stream := mustOpen(t, tempFile(t, "prog-1.ko.gz", gzipped(t, data)), opt)
	if d := cmp.Diff(raws(tab), raws(stream)); d != "" {
		t.Errorf("packed it differs: %s", d)
	}
	checkTable(t, tab)
	return tab
}

// armFunction is a function's start as compiled for per-site ops.
func armFunction(bti bool) []byte {
	code := insns(armNop, armNop)
	if bti {
		code = append(code, insns(0xd503245f)...) // bti c
	}
	return append(code, insns(armNop, armNop, 0xd65f03c0, 0xd65f03c0)...)
}

func TestELFARM64(t *testing.T) {
	plain := slices.Concat(armFunction(false), insns(0, 0)) // 32 bytes
	pad := slices.Concat(armFunction(true), insns(0))       // 32 bytes
	for _, c := range []struct {
		name    string
		code    []byte
		funcs   []uint64
		entries []uint64
		want    []Addr
	}{
		{"per-site ops", slices.Concat(plain, plain), []uint64{0x1008, 0x1028}, []uint64{0x1000, 0x1020},
			[]Addr{0x100c, 0x102c}},
		{"and landing pads", slices.Concat(pad, plain), []uint64{0x1008, 0x1028}, []uint64{0x1020, 0x1000},
			[]Addr{0x1010, 0x102c}},
		{"stripped", slices.Concat(plain, pad), nil, []uint64{0x1000, 0x1020}, []Addr{0x100c, 0x1030}},
		{"two NOPs", insns(armNop, armNop, 0xd65f03c0, 0, armNop, armNop, 0xd65f03c0), []uint64{0x1000, 0x1010},
			[]uint64{0x1000, 0x1010}, []Addr{0x1004, 0x1014}},
		{"two NOPs, landing pad", insns(0xd503245f, armNop, armNop, 0xd65f03c0), []uint64{0x1000}, []uint64{0x1004},
			[]Addr{0x1008}},
		{"four NOPs, landing pad", insns(0xd503245f, armNop, armNop, armNop, armNop), []uint64{0x1000}, []uint64{0x1004},
			[]Addr{0x1008}},
		{"two NOPs, stripped", insns(armNop, armNop, 0xd65f03c0, armNop), nil, []uint64{0x1000}, []Addr{0x1004}},
		{"mcount", insns(0xa9bf7bfd, 0x94000010), []uint64{0x1000}, []uint64{0x1004}, []Addr{0x1004}},
		{"end of section", insns(armNop, armNop), nil, []uint64{0x1000}, []Addr{0x1004}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := elfBuild{machine: elf.EM_AARCH64, kind: elf.ET_EXEC}
			text := b.text(0x1000, c.code)
			b.entries(0x8000, c.entries...)
			for _, f := range c.funcs {
				b.function("f"+Addr(f).String(), text, f)
			}
			tab := b.open(t, Options{Arch: "arm64"})
			if d := cmp.Diff(c.want, tab.Addrs()); d != "" {
				t.Error(d)
			}
			if tab.Arch() != "arm64" || tab.Module(0) != "" {
				t.Errorf("%s %q", tab.Arch(), tab.Module(0))
			}
			want := "sub_" + tab.Addr(0).String()[2:]
			if len(c.funcs) > 0 {
				want = "f" + Addr(c.funcs[0]).String()
			}
			if tab.Symbol(0) != want {
				t.Errorf("symbol %q, want %q", tab.Symbol(0), want)
			}
		})
	}
}

func TestELFRISCV(t *testing.T) {
	c := uint32(riscvCNop | riscvCNop<<16)
	for _, tc := range []struct {
		name  string
		code  []byte
		funcs []uint64
		want  []Addr
	}{
		{"per-site ops", insns(riscvNop, riscvNop, riscvNop, riscvNop), []uint64{0x1008}, []Addr{0x100c}},
		{"without", insns(riscvNop, riscvNop, 0x8067), []uint64{0x1000}, []Addr{0x1004}},
		{"per-site ops, compressed, stripped", insns(c, c, c, c), nil, []Addr{0x100c}},
		{"without, compressed, stripped", insns(c, c, c, 0x8067), nil, []Addr{0x1004}},
		{"per-site ops, stripped", insns(riscvNop, c, riscvNop, riscvNop), nil, []Addr{0x100c}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := elfBuild{machine: elf.EM_RISCV, kind: elf.ET_EXEC}
			text := b.text(0x1000, tc.code)
			b.entries(0x8000, 0x1000)
			for _, f := range tc.funcs {
				b.function("f", text, f)
			}
			tab := b.open(t, Options{})
			if d := cmp.Diff(tc.want, tab.Addrs()); d != "" || tab.Arch() != "riscv64" {
				t.Errorf("%s: %s", tab.Arch(), d)
			}
		})
	}
}

// TestELFImage reads linked files: words between the linker script's symbols,
// relocated ones, zeros and repetitions.
func TestELFImage(t *testing.T) {
	for machine, arch := range elfArches {
		b := elfBuild{machine: machine, kind: elf.ET_DYN}
		text := b.text(0x1000, make([]byte, 0x100))
		init := b.section(elfSec{name: ".init.data", kind: elf.SHT_PROGBITS, flags: dataFlags, addr: 0x8000,
			data: make([]byte, 64)})
		b.function("b", text, 0x1020)
		b.function("__c", text, 0x1040)
		b.function("c", text, 0x1040)
		b.symbol("a", elf.STT_FUNC, elf.STB_WEAK, text, 0x1000)
		b.function("__a", text, 0x1000)
		b.symbol(symStart, elf.STT_NOTYPE, elf.STB_GLOBAL, init, 0x8008)
		b.symbol(symStop, elf.STT_NOTYPE, elf.STB_GLOBAL, init, 0x8028)
		rel := slices.Concat(
			rela(0x8000, arch.relative, 0, 0x1080), // before the table
			rela(0x8008, arch.relative, 0, 0x1040),
			rela(0x8010, arch.absolute, 1, uint64(1<<64-0x20)),
			rela(0x8018, arch.relative, 0, 0x1040), // folded functions
			rela(0x8028, arch.relative, 0, 0x1080), // behind it
			rela(0x9000, 99, 0, 0))
		b.section(elfSec{name: ".rela.dyn", kind: elf.SHT_RELA, flags: elf.SHF_ALLOC, data: rel})
		b.section(elfSec{name: ".rela.init.data", kind: elf.SHT_RELA, data: rela(0x8020, arch.relative, 0, 0x10a0)})
		tab := b.open(t, Options{})
		off := Addr(4)
		if arch.name == "x86_64" {
			off = 0
		}
		want := []Raw{{0x1000 + off, "__a", ""}, {0x1040 + off, "c", ""}}
		if d := cmp.Diff(want, raws(tab)); d != "" {
			t.Errorf("%s: %s", arch.name, d)
		}
	}
}

// TestELFObject reads an unlinked file: sections laid out as a module's,
// relocations against sections and symbols.
func TestELFObject(t *testing.T) {
	build := func(extra ...elfSec) *elfBuild {
		b := &elfBuild{machine: elf.EM_X86_64, kind: elf.ET_REL}
		endbr := insns(x86Endbr64, 0, 0, 0)
		text := b.text(0, slices.Concat(make([]byte, 16), endbr, make([]byte, 5)))
		data := b.section(elfSec{name: ".data", kind: elf.SHT_PROGBITS, flags: dataFlags, data: make([]byte, 40)})
		init := b.section(elfSec{name: ".init.text", kind: elf.SHT_PROGBITS, flags: codeFlags, data: make([]byte, 8),
			align: 16})
		hot := b.section(elfSec{name: ".text.hot", kind: elf.SHT_PROGBITS, flags: codeFlags, data: make([]byte, 8),
			align: 64})
		first := b.entries(0, 0, 0, 0)
		second := b.entries(0, 0)
		sText := b.symbol("", elf.STT_SECTION, elf.STB_LOCAL, text, 0)
		sHot := b.symbol("hot", elf.STT_FUNC, elf.STB_GLOBAL, hot, 0)
		sInit := b.symbol("setup", elf.STT_FUNC, elf.STB_GLOBAL, init, 0)
		b.function("one", text, 0)
		b.function("two", text, 16)
		abs := elfArches[elf.EM_X86_64].absolute
		b.section(elfSec{name: ".rela" + secPatchable, kind: elf.SHT_RELA, info: first, data: slices.Concat(
			rela(0, abs, sText, 16), rela(8, abs, sHot, 0), rela(16, 0, 0, 0))})
		b.section(elfSec{name: ".rela" + secPatchable, kind: elf.SHT_RELA, info: second, data: rela(0, abs, sInit, 0)})
		b.section(elfSec{name: ".rela.data", kind: elf.SHT_RELA, info: data, data: rela(0, 77, 0, 0)})
		for _, s := range extra {
			b.section(s)
		}
		return b
	}
	base := Addr(elfArches[elf.EM_X86_64].modules)
	for _, c := range []struct {
		module string
		extra  []elfSec
	}{
		{"prog_1", nil},
		{"info", []elfSec{{name: ".modinfo", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC,
			data: []byte("license=GPL\x00name=info\x00")}}},
		{"this", []elfSec{{name: ".gnu.linkonce.this_module", kind: elf.SHT_PROGBITS, flags: dataFlags,
			data: append(make([]byte, 24), "this\x00..."...)}}},
		{"prog_1", []elfSec{{name: ".modinfo", kind: elf.SHT_PROGBITS, data: []byte("name=a b\x00")},
			{name: ".gnu.linkonce.this_module", kind: elf.SHT_NOBITS}}},
	} {
		tab := build(c.extra...).open(t, Options{})
		want := []Raw{
			{base + 16 + 4, "two", c.module},        // behind its landing pad
			{base + 64, "hot", c.module},            // on its alignment
			{base + 2*PageBytes, "setup", c.module}, // data has a page, then comes init
		}
		if d := cmp.Diff(want, raws(tab)); d != "" {
			t.Error(d)
		}
	}
}

// elfCase is a file that cannot be read, and why.
type elfCase struct {
	name string
	data []byte
	opt  Options
	want string
}

func runELFCases(t *testing.T, cases []elfCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := tempFile(t, "bad", string(c.data))
			_, err := Open(context.Background(), path, c.opt)
			wantError(t, err, path+": "+c.want)
		})
	}
}

// x86File builds a file for x86_64.
func x86File(t *testing.T, kind elf.Type, fill func(b *elfBuild)) []byte {
	b := &elfBuild{machine: elf.EM_X86_64, kind: kind}
	fill(b)
	return b.bytes(t)
}

func TestELFErrors(t *testing.T) {
	good := x86File(t, elf.ET_EXEC, func(b *elfBuild) {
		b.function("f", b.text(0x1000, make([]byte, 16)), 0x1000)
		b.entries(0x2000, 0x1000)
	})
	edit := func(off int, v ...byte) []byte {
		data := slices.Clone(good)
		copy(data[off:], v)
		return data
	}
	runELFCases(t, []elfCase{
		{"other architecture", good, Options{Arch: "arm64"}, "an ELF file for x86_64, not for arm64"},
		{"unknown machine", edit(18, 8), Options{},
			"an ELF file for EM_MIPS, ELFDATA2LSB; x86_64, arm64 and riscv64 are understood"},
		{"32 bit", edit(4, 1), Options{}, "a 32-bit ELF file (ELFCLASS32); only 64-bit ones have records here"},
		{"core dump", edit(16, 4), Options{},
			"an ELF file of type ET_CORE; programs, libraries, objects and kernel modules have records"},
		{"10 bytes", good[:10], Options{}, "ELF file cut short"},
		{"cut short", good[:100], Options{}, "ELF file cut short or malformed: EOF"},
		{"nothing patchable", x86File(t, elf.ET_EXEC, func(b *elfBuild) { b.text(0x1000, make([]byte, 8)) }), Options{},
			"lists no patchable functions: no section __mcount_loc or __patchable_function_entries and no symbol " +
				"__start_mcount_loc (compile with -fpatchable-function-entry)"},
		{"odd size", x86File(t, elf.ET_EXEC, func(b *elfBuild) {
			b.section(elfSec{name: secMcount, kind: elf.SHT_PROGBITS, data: make([]byte, 12)})
		}), Options{}, `section "__mcount_loc": 12 bytes, not a multiple of 8`},
		{"zeros", x86File(t, elf.ET_EXEC, func(b *elfBuild) { b.entries(0, 0, 0) }), Options{},
			`section "__patchable_function_entries": all entries are zero; the relocations that fill them in were stripped, or nothing is patchable`},
	})
	t.Run("section behind the end", func(t *testing.T) {
		// The headers are at the end; let the first section reach behind it.
		shoff := binary.LittleEndian.Uint64(good[40:])
		_, err := readString(string(edit(int(shoff)+2*64+32, 0, 0, 1)), Options{})
		if err == nil || !strings.HasSuffix(err.Error(), "cut short") {
			t.Error(err)
		}
	})
}

func TestELFRelocationErrors(t *testing.T) {
	object := func(rel []byte) []byte {
		return x86File(t, elf.ET_REL, func(b *elfBuild) {
			b.symbol("gone", elf.STT_FUNC, elf.STB_GLOBAL, 0, 0)
			b.section(elfSec{name: ".rela.p", kind: elf.SHT_RELA, info: b.entries(0, 0), data: rel})
		})
	}
	image := func(rel []byte) []byte {
		return x86File(t, elf.ET_DYN, func(b *elfBuild) {
			b.symbol("gone", elf.STT_FUNC, elf.STB_GLOBAL, 0, 0)
			b.entries(0x2000, 0)
			b.section(elfSec{name: ".rela.dyn", kind: elf.SHT_RELA, flags: elf.SHF_ALLOC, data: rel})
		})
	}
	marked := func(start, stop uint64) []byte {
		return x86File(t, elf.ET_EXEC, func(b *elfBuild) {
			sec := b.section(elfSec{name: ".init.data", kind: elf.SHT_PROGBITS, flags: dataFlags, addr: 0x8000,
				data: words(1, 2)})
			b.symbol(symStart, elf.STT_NOTYPE, elf.STB_GLOBAL, sec, start)
			b.symbol(symStop, elf.STT_NOTYPE, elf.STB_GLOBAL, sec, stop)
		})
	}
	runELFCases(t, []elfCase{
		{"relocation type", object(rela(0, 10, 1, 0)), Options{},
			`section ".rela.p": offset 0x0: relocation type 10, not the 64-bit address 1`},
		{"relocation offset", object(rela(8, 1, 1, 0)), Options{},
			`section ".rela.p": offset 0x8 is not a word of __patchable_function_entries`},
		{"undefined symbol", object(rela(0, 1, 1, 0)), Options{},
			`section ".rela.p": offset 0x0: symbol 1 is not defined in this file`},
		{"no such symbol", object(rela(0, 1, 9, 0)), Options{},
			`section ".rela.p": offset 0x0: symbol 9 is not defined in this file`},
		{"half a relocation", object(make([]byte, 25)), Options{}, `section ".rela.p": 25 bytes, not a multiple of 24`},
		{"image relocation type", image(rela(0x2000, 10, 1, 0)), Options{},
			`section ".rela.dyn": address 0x2000: relocation type 10: want relative (8) or a 64-bit address (1)`},
		{"image relocation offset", image(rela(0x2004, 8, 1, 0)), Options{},
			`section ".rela.dyn": address 0x2004 is not a word of __patchable_function_entries`},
		{"image undefined symbol", image(rela(0x2000, 1, 1, 0)), Options{},
			`section ".rela.dyn": address 0x2000: symbol 1 is not defined in this file`},
		{"symbols crossed", marked(0x8008, 0x8000), Options{},
			"symbols __start_mcount_loc 0x8008 and __stop_mcount_loc 0x8000 do not enclose a table"},
		{"symbols astray", marked(0x8008, 0x9000), Options{},
			"no section holds the table from __start_mcount_loc 0x8008 to __stop_mcount_loc 0x9000"},
	})
}

// TestELFEveryCut reads every beginning of a file: each is an error.
func TestELFEveryCut(t *testing.T) {
	b := elfBuild{machine: elf.EM_X86_64, kind: elf.ET_EXEC}
	b.function("f", b.text(0x1000, make([]byte, 16)), 0x1000)
	b.entries(0x2000, 0x1000)
	data := b.bytes(t)
	for i := 4; i < len(data); i++ {
		tab, err := readString(string(data[:i]), Options{})
		if err == nil {
			t.Errorf("%d of %d bytes: %d records", i, len(data), tab.Len())
		}
		checkParsed(t, tab, err)
	}
}

func TestModuleOfFile(t *testing.T) {
	for path, want := range map[string]string{
		"/x/nf-log.ko.xz": "nf_log", "a.o": "a", "b c.ko": "b_c", "plain": "plain",
	} {
		if got := fileModule(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestELFVmlinux reads a kernel image where one is at hand.
func TestELFVmlinux(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/debug/boot/vmlinux-*")
	if len(found) == 0 || !*long {
		t.Skip("needs -long and a vmlinux below /usr/lib/debug/boot")
	}
	if _, err := os.Stat(found[0]); err != nil {
		t.Skip(err)
	}
	checkTable(t, mustOpen(t, found[0], Options{}))
}
