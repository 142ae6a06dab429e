// SPDX-License-Identifier: Apache-2.0

package vmlinux_test

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/unpack"
	"github.com/textpoke/textpoke/records/vmlinux"
)

var le = binary.LittleEndian

// elfFile is an ELF file with these program headers and nothing else; Off is filled in.
func elfFile(machine elf.Machine, kind elf.Type, parts ...part) []byte {
	var b, data bytes.Buffer
	h := elf.Header64{Type: uint16(kind), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56,
		Phnum: uint16(len(parts)), Shentsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	_ = binary.Write(&b, le, h)
	for _, p := range parts {
		p.Off = uint64(64 + 56*len(parts) + data.Len())
		data.Write(p.data)
		_ = binary.Write(&b, le, p.Prog64)
	}
	return append(b.Bytes(), data.Bytes()...)
}

// part is a program header and the bytes that it says are in the file.
type part struct {
	elf.Prog64
	data []byte
}

func load(addr uint64, data []byte) part {
	n := uint64(len(data))
	return part{elf.Prog64{Type: uint32(elf.PT_LOAD), Vaddr: addr, Filesz: n, Memsz: n}, data}
}

// bzImage wraps a payload as arch/x86/boot/header.S does, behind so many sectors of setup
// code; 0 stands for 4 (Documentation/arch/x86/boot.rst).
func bzImage(protocol uint16, sectors byte, gap uint32, payload []byte) []byte {
	setup := int(sectors)
	if setup == 0 {
		setup = 4
	}
	b := make([]byte, (setup+1)*512+int(gap))
	b[0x1f1] = sectors
	copy(b[0x202:], "HdrS")
	le.PutUint16(b[0x206:], protocol)
	le.PutUint32(b[0x248:], gap)
	le.PutUint32(b[0x24c:], uint32(len(payload)))
	return append(append(b, payload...), "behind it"...)
}

// zboot wraps a payload as drivers/firmware/efi/libstub/zboot-header.S does.
func zboot(payload []byte) []byte {
	b := make([]byte, 0x1000)
	copy(b, "MZ\x00\x00zimg")
	le.PutUint32(b[8:], 0x1000)
	le.PutUint32(b[12:], uint32(len(payload)))
	return append(append(b, payload...), "behind it"...)
}

// TestForms: one kernel in each form in which kernels are kept. Its memory is the same, its
// symbols are, and so is what its first bytes say.
func TestForms(t *testing.T) {
	s := fakekernel.Make("offsets-last")
	const cut = fakekernel.Tables
	x86 := elfFile(elf.EM_X86_64, elf.ET_EXEC,
		load(fakekernel.Base+cut, s.Data[cut:]),                     // out of order
		part{Prog64: elf.Prog64{Type: 1, Vaddr: 1 << 40, Memsz: 9}}, // .bss: no byte of the file
		load(0, make([]byte, 4096)),                                 // per-CPU data
		load(1<<20-1, make([]byte, 64)),
		part{elf.Prog64{Type: uint32(elf.PT_NOTE), Vaddr: 1 << 41, Filesz: 4}, []byte("note")},
		load(fakekernel.Base, s.Data[:cut]))
	two := []vmlinux.Segment{{Addr: fakekernel.Base, Data: s.Data[:cut]},
		{Addr: fakekernel.Base + cut, Data: s.Data[cut:]}}
	one := []vmlinux.Segment{{Addr: fakekernel.Base, Data: s.Data}}
	low := append([]vmlinux.Segment{{Addr: 1 << 20, Data: []byte("low")}}, one...)
	packed := gz(t, s.Data)
	for _, c := range []struct {
		form, arch string // arch: what the first bytes tell, before the colon, and all of the file
		file       []byte
		want       []vmlinux.Segment
	}{
		{"Image", "riscv64:riscv64", s.Data, one},
		{"gzip/Image", ":riscv64", packed, one},
		{"zboot/gzip/Image", ":riscv64", zboot(packed), one},
		{"gzip/zboot/Image", ":riscv64", gz(t, zboot(s.Data)), one},
		{"ELF", "arm64:arm64",
			elfFile(elf.EM_AARCH64, elf.ET_DYN, load(1<<20, []byte("low")), load(fakekernel.Base, s.Data)), low},
		{"bzImage/ELF", "x86_64:x86_64", bzImage(0x208, 0, 0, x86), two},
		{"bzImage/gzip/ELF", "x86_64:x86_64", bzImage(0x20f, 27, 0x100, gz(t, x86)), two},
	} {
		path := filepath.Join(t.TempDir(), "kernel")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := vmlinux.Open(path)
		if err != nil {
			t.Errorf("%s: %v", c.form, err)
			continue
		}
		head, whole, _ := strings.Cut(c.arch, ":")
		if k.Form != c.form || k.Arch.Name != whole || k.Release != "9.9.9-synthetic" || k.File != path ||
			k.Banner != "Linux version 9.9.9-synthetic (nobody) #1 SMP PREEMPT_RT" {
			t.Errorf("%s: %s of %s, release %q, banner %q", c.form, k.Form, k.Arch.Name, k.Release, k.Banner)
		}
		if sum := sha256.Sum256(c.file); k.Hash != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: hash %s", c.form, k.Hash)
		}
		if !slices.EqualFunc(k.Segments, c.want, func(a, b vmlinux.Segment) bool {
			return a.Addr == b.Addr && bytes.Equal(a.Data, b.Data)
		}) {
			t.Errorf("%s: other segments", c.form)
		}
		if !slices.Equal(k.All, s.Names) {
			t.Errorf("%s: other symbols", c.form)
		}
		if a := vmlinux.ArchOf(c.file[:vmlinux.HeadBytes]); (a == nil) != (head == "") || a != nil && a.Name != head {
			t.Errorf("%s: the first page is of %v, want %q", c.form, a, head)
		}
		inside, err := vmlinux.Inside("f", c.file)
		if want := map[bool][]byte{true: s.Data, false: x86}[strings.HasSuffix(c.form, "Image")]; err != nil ||
			c.form != "ELF" && !bytes.Equal(inside, want) || c.form == "ELF" && !bytes.Equal(inside, c.file) {
			t.Errorf("%s: %d bytes inside, %v", c.form, len(inside), err)
		}
	}
}

// TestLooks: which files are meant for kernels, by their first bytes.
func TestLooks(t *testing.T) {
	raw := make([]byte, 128)
	copy(raw[0x38:], "ARM\x64")
	short := raw[:64] // a header is 64 bytes, and something follows it
	for name, c := range map[string]struct {
		head  []byte
		looks bool
		arch  string
	}{
		"ELF":          {elfFile(elf.EM_RISCV, elf.ET_EXEC), true, "riscv64"},
		"another ELF":  {elfFile(elf.EM_386, elf.ET_EXEC), true, ""},
		"20 bytes ELF": {elfFile(elf.EM_RISCV, elf.ET_EXEC)[:20], true, "riscv64"},
		"19 bytes ELF": {elfFile(elf.EM_RISCV, elf.ET_EXEC)[:19], true, ""},
		"EFI":          {[]byte("MZ"), true, ""},
		"raw":          {raw, true, "arm64"},
		"header":       {short, false, ""},
		"LZO":          {[]byte("\x89LZO\x00\x0d\x0a\x1a\x0a and more"), true, ""},
		"setup":        {bzImage(0x208, 1, 0, nil)[:0x261], true, "x86_64"},
		"cut setup":    {bzImage(0x208, 1, 0, nil)[:0x260], false, ""},
		"gzip":         {gz(t, raw), false, ""},
		"empty":        {nil, false, ""},
	} {
		if got := vmlinux.Looks(c.head); got != c.looks {
			t.Errorf("%s: %v, want %v", name, got, c.looks)
		}
		if a := vmlinux.ArchOf(c.head); (a == nil) != (c.arch == "") || a != nil && a.Name != c.arch {
			t.Errorf("%s: of %v, want %q", name, a, c.arch)
		}
	}
}

// TestUnpack: what packings and zboot are around is left, whatever it is, and no more of it
// than may be.
func TestUnpack(t *testing.T) {
	module := bytes.Repeat([]byte("any bytes, such as a module's"), 40)
	four := module
	for range unpack.Layers - 1 {
		four = gz(t, four)
	}
	for name, c := range map[string]struct {
		b    []byte
		want string // of the error
	}{
		"plain": {module, ""}, "gzip": {gz(t, module), ""}, "zboot": {zboot(gz(t, module)), ""}, "three": {four, ""},
		"four": {gz(t, four), "packed more than 3 times"}, "long": {gz(t, append(module, 1)), "unpacks to more than"},
		"cut": {zboot(gz(t, module))[:0x1004], "is cut off"},
	} {
		got, err := vmlinux.Unpack(c.b, len(module))
		if c.want == "" && (err != nil || !bytes.Equal(got, module)) ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v, want an error with %q", name, got, err, c.want)
		}
	}
}

// TestRefusedForms: what is wrong with a form, in words.
func TestRefusedForms(t *testing.T) {
	some := make([]byte, 15)
	long := load(1<<20, some)
	long.Filesz = 1 << 40
	missing := load(1<<20, some)
	missing.Filesz++
	around := load(^uint64(0)-7, some)
	const no = ": not a kernel image: want vmlinuz, vmlinux, Image or zboot"
	const noSymbols = "kernel: no symbol table that is understood (no table of tokens); CONFIG_KALLSYMS is needed"
	banner := []byte("Linux version 9.9.9 (nobody)\n")
	for want, b := range map[string][]byte{
		"bzImage: boot protocol 2.07 says not where its payload is": bzImage(0x207, 1, 0, make([]byte, 16)),
		"bzImage: its payload of 15 bytes is cut off":               bzImage(0x208, 1, 0, some),
		"zboot: its payload of 16 bytes is cut off":                 zboot(make([]byte, 16))[:0x100f],
		"zboot: its payload of 99 bytes is cut off":                 zboot(make([]byte, 99))[:0x0fff],
		"zboot: its payload of 9 bytes is cut off":                  zboot(make([]byte, 9))[:65],
		"zboot" + no:                          zboot(make([]byte, 16))[:0x1010],
		"LZO data: unpack it first (lzop -d)": []byte("\x89LZO\x00\x0d\x0a\x1a\x0a and more"),
		"gzip" + no:                           gz(t, some),
		"gzip/gzip/gzip/gzip: packed more than 3 times":                      gz(t, gz(t, gz(t, gz(t, some)))),
		"ELF file: instruction set EM_386 is none of x86_64, arm64, riscv64": elfFile(elf.EM_386, elf.ET_EXEC),
		"ELF file: ELFCLASS64, ELFDATA2MSB: want 64 bits, little endian":     bigEndian(),
		"ELF file: a module or object, not a kernel":                         elfFile(elf.EM_X86_64, elf.ET_REL, load(1<<20, some)),
		"ELF file: holds no segment of a kernel":                             elfFile(elf.EM_X86_64, elf.ET_EXEC),
		"ELF file: its segments take more than 256 MiB":                      elfFile(elf.EM_X86_64, elf.ET_EXEC, long),
		"ELF file: its segments take more than 256 MiB ":                     elfFile(elf.EM_X86_64, elf.ET_EXEC, around),
		"ELF file: segment at 0x100000 is cut short":                         elfFile(elf.EM_X86_64, elf.ET_EXEC, missing),
		"ELF file: cut short":                                                elfFile(elf.EM_X86_64, elf.ET_EXEC)[:20],
		"ELF: holds no Linux version: not a kernel":                          elfFile(elf.EM_X86_64, elf.ET_EXEC, load(1<<20, some)),
		no[2:]:       []byte("MZ"),
		no[2:] + " ": zboot(make([]byte, 16))[:64],
		noSymbols:    elfFile(elf.EM_X86_64, elf.ET_EXEC, load(1<<20, banner)),
	} {
		if _, err := read(b); err == nil || err.Error() != "f: "+strings.TrimSpace(want) {
			t.Errorf("%v, want f: %s", err, want)
		}
	}
	if _, err := vmlinux.Inside("f", gz(t, some)); err == nil || err.Error() != "f: gzip"+no {
		t.Errorf("inside of no kernel: %v", err)
	}
	dir := t.TempDir()
	if _, err := vmlinux.Open(dir); err == nil || err.Error() != dir+": it is a directory" {
		t.Errorf("a directory: %v", err)
	}
	if err := vmlinux.InFile("f", os.ErrClosed); err.Error() != "f: file already closed" || !errors.Is(err, os.ErrClosed) {
		t.Errorf("an error of the system: %v", err)
	}
	packed := bytes.NewReader(gz(t, some))
	if _, err := vmlinux.Read("f", packed, 1<<20); err == nil || err.Error() != "f: file: cut short" {
		t.Errorf("a file that became shorter: %v", err)
	}
}

func bigEndian() []byte {
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64, Phentsize: 56,
		Shentsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x02\x01")
	_ = binary.Write(&b, binary.BigEndian, h)
	return b.Bytes()
}

// TestRelocations: pointers that stand in relocations alone are filled in, and say where the
// kernel is linked (arm64 with --no-apply-dynamic-relocs). A thousand in a row are a kernel's;
// fewer, and those of another type, are not.
func TestRelocations(t *testing.T) {
	const at, relative, others = 0x400000, 1027, 1025
	const shown, empty = 0x3f0000, 0x3e0000 // pointers that stand in the image, and that do not
	make := func(n, end int) *fakekernel.Kernel {
		s := fakekernel.Make("offsets-first")
		copy(s.Data[0x38:], "ARM\x64")
		rela := func(to, p int, kind uint64) {
			le.PutUint64(s.Data[to:], fakekernel.Base+uint64(p))
			le.PutUint64(s.Data[to+8:], kind)
			le.PutUint64(s.Data[to+16:], fakekernel.Base+0x40+uint64(p-empty))
		}
		for i := range n {
			p := empty + 8*i
			if i >= 600 {
				p = shown + 8*i
				le.PutUint64(s.Data[p:], fakekernel.Base+0x40+uint64(p-empty))
			}
			rela(at+24*i, p, relative)
		}
		for i, p := range []int{fakekernel.Size - 8, fakekernel.Size - 7, fakekernel.Size, fakekernel.Size + 8} {
			rela(at+24*(n-4+i), p, relative) // the last pointer of the image, and what lies outside
		}
		rela(at+24*n, 0x3d0000, others)
		for i := range end { // another row at the end of the image
			rela(fakekernel.Size-24*(end-i), 0x3c0000+8*i, relative)
		}
		return s
	}
	s := make(1000, 1000) // the first row counts
	k, err := read(s.Data)
	if err != nil {
		t.Fatal(err)
	}
	if k.Segments[0].Addr != fakekernel.Base || !slices.Equal(k.All, s.Names) {
		t.Errorf("linked at %#x; %d symbols of %d", k.Segments[0].Addr, len(k.All), len(s.Names))
	}
	for i := range 997 {
		p := uint64(empty + 8*i)
		if i >= 600 {
			p = shown + 8*uint64(i)
		}
		if i == 996 {
			p = fakekernel.Size - 8
		}
		if got, want := k.Pointer(fakekernel.Base+p), fakekernel.Base+0x40+p-empty; got != want {
			t.Fatalf("pointer %d is %#x, want %#x", i, got, want)
		}
	}
	if k.Pointer(fakekernel.Base+0x3d0000) != 0 || k.Pointer(fakekernel.Base+0x3c0000) != 0 {
		t.Error("a relocation of another type, or of another row, gave a pointer")
	}
	want := []string{"1000 relocations give pointers, 600 of them empty in the image; linked at 0xffffffff80000000"}
	if !slices.Equal(k.Notes, want) {
		t.Errorf("notes %q", k.Notes)
	}
	s = make(999, 1000)
	if k, err = read(s.Data); err != nil || k.Pointer(fakekernel.Base+empty) != 0 ||
		k.Pointer(fakekernel.Base+0x3c0000+8*999) != fakekernel.Base+0x40+0x3c0000+8*999-empty {
		t.Errorf("1000 relocations at the end: %v, notes %q", err, k.Notes)
	}
	s = make(999, 999)
	if k, err = read(s.Data); err != nil || len(k.Notes) != 0 || k.Pointer(fakekernel.Base+empty) != 0 {
		t.Errorf("999 relocations: %v, notes %q", err, k.Notes)
	}
}
