// SPDX-License-Identifier: Apache-2.0

package vmlinux

import (
	"bytes"
	"cmp"
	"debug/elf"
	"io"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records/unpack"
)

// Limits of sizes, against files that unpack to more than a machine holds. A
// distribution's kernel unpacks to 30 to 130 MiB.
const (
	MaxFile     = 256 << 20 // bytes of a file that is not ELF
	MaxUnpacked = 256 << 20 // bytes of a kernel in memory
)

const magicLZO = "\x89LZO\x00\x0d\x0a\x1a\x0a" // no kept library reads it

// unwrap turns a boot file into the kernel's memory.
func unwrap(b []byte) (*Memory, error) {
	b, form, err := peel(b)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(b, []byte(elf.ELFMAG)) {
		return readELF(unpacked{bytes.NewReader(b), b}, form)
	}
	return &Memory{Arch: rawArch(b), Form: strings.Join(form, "/"), Segments: []Segment{{0, b}}}, nil
}

// peel takes a boot file's forms off, up to the ELF file or raw image inside, and names them.
func peel(b []byte) (inside []byte, form []string, err error) {
	for range unpack.Layers {
		switch p := unpack.Of(b); {
		case bytes.HasPrefix(b, []byte(elf.ELFMAG)):
			return b, append(form, "ELF"), nil
		case isBzImage(b):
			form = append(form, "bzImage")
			b, err = bzPayload(b)
		case isZboot(b):
			form = append(form, "zboot")
			b, err = zbootPayload(b)
		case rawArch(b) != nil:
			return b, append(form, "Image"), nil
		case bytes.HasPrefix(b, []byte(magicLZO)):
			err = Fail("LZO data", "unpack it first (lzop -d)")
		case p != nil:
			form = append(form, p.Name)
			b, err = p.Bytes(b, MaxUnpacked)
		default:
			err = Fail(strings.Join(form, "/"), "not a kernel image: want vmlinuz, vmlinux, Image or zboot")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, Fail(strings.Join(form, "/"), "packed more than %d times", unpack.Layers-1)
}

// Inside is the ELF file or raw image that a boot file holds.
func Inside(file string, b []byte) ([]byte, error) {
	inside, _, err := peel(b)
	if err != nil {
		return nil, InFile(file, err)
	}
	return inside, nil
}

// ArchOf is the instruction set of a boot image or ELF file that begins like this; nil if it
// is neither, or of none of ours.
func ArchOf(head []byte) *Arch {
	switch {
	case isBzImage(head):
		return OfMachine(elf.EM_X86_64)
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)) && len(head) >= 20:
		return OfMachine(elf.Machine(le.Uint16(head[18:])))
	}
	return rawArch(head)
}

// Unpack takes off a file's packing, and EFI's zboot around it, until at most limit bytes are left
// that are neither: the image that a boot loader hands over, or the module that the kernel loads.
func Unpack(b []byte, limit int) ([]byte, error) {
	for range unpack.Layers {
		var err error
		switch p := unpack.Of(b); {
		case isZboot(b):
			b, err = zbootPayload(b)
		case p != nil:
			b, err = p.Bytes(b, limit)
		default:
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, Fail("", "packed more than %d times", unpack.Layers-1)
}

// isZboot looks for the magic of EFI's header (drivers/firmware/efi/libstub/zboot-header.S).
func isZboot(b []byte) bool { return len(b) > 64 && string(b[:2]) == "MZ" && string(b[4:8]) == "zimg" }

// isBzImage looks for the magic of the setup header (Documentation/arch/x86/boot.rst).
func isBzImage(b []byte) bool { return len(b) > 0x260 && string(b[0x202:0x206]) == "HdrS" }

// bzPayload is what x86's setup header says: setup_sects at 0x1f1, payload_offset at
// 0x248, payload_length at 0x24c, protocol 2.08 and later.
func bzPayload(b []byte) ([]byte, error) {
	const what = "bzImage"
	if v := le.Uint16(b[0x206:]); v < 0x208 {
		return nil, Fail(what, "boot protocol %d.%02d says not where its payload is", v>>8, v&0xff)
	}
	sectors := cmp.Or(uint64(b[0x1f1]), 4)
	from := uint64(le.Uint32(b[0x248:])) + (sectors+1)*512
	return payload(what, b, from, uint64(le.Uint32(b[0x24c:])))
}

// zbootPayload is what EFI's header says (drivers/firmware/efi/libstub/zboot-header.S).
func zbootPayload(b []byte) ([]byte, error) {
	return payload("zboot", b, uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:])))
}

func payload(what string, b []byte, from, size uint64) ([]byte, error) {
	if from > uint64(len(b)) || size > uint64(len(b))-from || size < 16 {
		return nil, Fail(what, "its payload of %d bytes is cut off", size)
	}
	return b[from : from+size], nil
}

func rawArch(b []byte) *Arch {
	return spelling.First(arches, func(a *Arch) bool {
		return a.Magic != "" && len(b) > 64 && string(b[0x38:0x38+len(a.Magic)]) == a.Magic
	})
}

// unpacked is a file in memory; segments are parts of it.
type unpacked struct {
	*bytes.Reader
	all []byte
}

// readELF reads only the segments of an ELF file.
func readELF(r io.ReaderAt, form []string) (*Memory, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, Fail("ELF file", "%s", unpack.Reason(err))
	}
	m := &Memory{Arch: OfMachine(f.Machine), Form: strings.Join(form, "/")}
	switch {
	case m.Arch == nil:
		return nil, Fail("ELF file", "instruction set %s is none of %s", f.Machine, ArchNames())
	case f.Class != elf.ELFCLASS64 || f.ByteOrder != le:
		return nil, Fail("ELF file", "%s, %s: want 64 bits, little endian", f.Class, f.Data)
	case f.Type == elf.ET_REL:
		return nil, Fail("ELF file", "a module or object, not a kernel")
	}
	sum := uint64(0)
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Filesz == 0 || p.Vaddr < 1<<20 { // x86's per-CPU data is linked at 0 until 6.15
			continue
		}
		if sum += p.Filesz; p.Filesz > MaxUnpacked || sum > MaxUnpacked || p.Vaddr+p.Filesz < p.Vaddr {
			return nil, Fail("ELF file", "its segments take more than %d MiB", MaxUnpacked>>20)
		}
		var data []byte
		if u, ok := r.(unpacked); ok && p.Off <= uint64(len(u.all)) {
			data = u.all[p.Off:]
			data = data[:min(uint64(len(data)), p.Filesz)]
		} else {
			data, _ = io.ReadAll(p.Open()) // a size that the file does not have is not believed
		}
		if uint64(len(data)) != p.Filesz {
			return nil, Fail("ELF file", "segment at %#x is cut short", p.Vaddr)
		}
		m.Segments = append(m.Segments, Segment{p.Vaddr, data})
	}
	if len(m.Segments) == 0 {
		return nil, Fail("ELF file", "holds no segment of a kernel")
	}
	slices.SortFunc(m.Segments, func(a, b Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	return m, nil
}

// ArchNames are the instruction sets that are read, in a list.
func ArchNames() string {
	return strings.Join(spelling.Each(arches, func(a *Arch) string { return a.Name }), ", ")
}

// kernelHalf is what the upper bits of a kernel's address are where virtual addresses
// have 48 bits or fewer, and with 52 too (VA_BITS_MIN).
func inKernelHalf(addr uint64) bool { return addr>>52 == 0xfff }

// minRelocations is how many relocations in a row are a kernel's, and no accident.
const minRelocations = 1000

// relaBytes is the size of Elf64_Rela: where, type, addend.
const relaBytes = 24

// relocate fills in the pointers of a raw image that stand nowhere but in its relocations
// (arm64 with --no-apply-dynamic-relocs, to 6.1). No symbol is needed: kallsyms' own
// base is among them. They are found by their contents.
func (k *Kernel) relocate() {
	if !k.raw() {
		return
	}
	d := k.Segments[0].Data
	best, count := k.Longest(relaBytes, func(_ uint64, rela []byte) bool {
		return le.Uint64(rela[8:]) == k.Arch.relative && inKernelHalf(le.Uint64(rela))
	})
	if count >= minRelocations {
		k.apply(d, d[best:int(best)+relaBytes*count])
	}
}

// apply fills in pointers. The base is the least of the addends rounded down to the
// alignment of an image (64 KiB at least, Documentation/arch/arm64/booting.rst).
func (k *Kernel) apply(d, relas []byte) {
	low := ^uint64(0)
	for r := range slices.Chunk(relas, relaBytes) {
		if a := le.Uint64(r[16:]); inKernelHalf(a) {
			low = min(low, a)
		}
	}
	base, filled := low&^0xfffff, 0
	for r := range slices.Chunk(relas, relaBytes) {
		at := le.Uint64(r) - base
		if at < uint64(len(d)) && uint64(len(d))-at >= 8 {
			if le.Uint64(d[at:]) == 0 {
				filled++
			}
			le.PutUint64(d[at:], le.Uint64(r[16:]))
		}
	}
	k.Segments[0].Addr = base
	k.Note(
		"%d relocations give pointers, %d of them empty in the image; linked at %#x",
		len(relas)/relaBytes,
		filled,
		base,
	)
}

// settle finds out where a raw image without such relocations is linked. Symbols that
// are absolute say so themselves; otherwise a pointer to a symbol does.
func (k *Kernel) settle() error {
	if !k.raw() {
		return nil
	}
	for _, name := range []string{"_text", "_stext", "_start"} {
		if at, ok := k.Addr(name); ok && inKernelHalf(at) {
			k.Segments[0].Addr = at &^ 0xfffff
			return nil
		}
	}
	// Addends are in place (RELR, or none): struct tracepoint points to its iterator.
	tp, ok1 := k.Addr("__tracepoint_sched_switch")
	iter, ok2 := k.Addr("__traceiter_sched_switch")
	for at := tp + 8; ok1 && ok2 && at < tp+96; at += 8 {
		if v := k.Pointer(at); inKernelHalf(v) && (v-iter)&0xfff == 0 && v-iter <= ^uint64(0)-k.reaches() {
			k.Note("addends are in place; linked at %#x, by a pointer to __traceiter_sched_switch", v-iter)
			k.Segments[0].Addr = v - iter
			k.shift(v - iter)
			return nil
		}
	}
	return Fail("kernel", "where it is linked cannot be told")
}
