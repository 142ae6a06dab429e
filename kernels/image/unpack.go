// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
	"strings"
)

// maxLayers is how many forms may be wrapped around each other: gzip around zboot
// around gzip around an Image is the most that is built.
const maxLayers = 4

// unwrap turns a boot file into the kernel's memory, form by form.
func unwrap(b []byte) (*memory, error) {
	var form []string
	for range maxLayers {
		var err error
		switch {
		case bytes.HasPrefix(b, []byte(elf.ELFMAG)):
			return readELF(b, append(form, "ELF"))
		case isBzImage(b):
			form = append(form, "bzImage")
			b, err = bzPayload(b)
		case isZboot(b):
			form = append(form, "zboot")
			b, err = zbootPayload(b)
		case rawArch(b) != nil:
			return rawImage(b, append(form, "Image"))
		case bytes.HasPrefix(b, []byte(magicLZO)):
			err = fail("LZO data", "unpack it first (lzop -d)")
		case packedWith(b) != nil:
			p := packedWith(b)
			form = append(form, p.name)
			b, err = p.unpack(b, MaxUnpacked)
		default:
			return nil, fail(strings.Join(form, "/"), "not a kernel image: want vmlinuz, vmlinux, Image or zboot")
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fail(strings.Join(form, "/"), "packed more than %d times", maxLayers-1)
}

// Unpack takes off what a file is packed with, and EFI's zboot around it, until at most
// limit bytes are left that are neither: what a boot loader hands over, or what the kernel
// loads as a module.
func Unpack(b []byte, limit int) ([]byte, error) {
	for range maxLayers {
		var err error
		switch p := packedWith(b); {
		case isZboot(b):
			b, err = zbootPayload(b)
		case p != nil:
			b, err = p.unpack(b, limit)
		default:
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fail("", "packed more than %d times", maxLayers-1)
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
		return nil, fail(what, "boot protocol %d.%02d says not where its payload is", v>>8, v&0xff)
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
		return nil, fail(what, "its payload of %d bytes is cut off", size)
	}
	return b[from : from+size], nil
}

func rawArch(b []byte) *arch {
	for _, a := range arches {
		if a.magic != "" && len(b) > 64 && string(b[0x38:0x38+len(a.magic)]) == a.magic {
			return a
		}
	}
	return nil
}

// rawImage is a kernel as it lies in memory. Its header says how much memory it takes
// (image_size at 16), which is no less than the file.
func rawImage(b []byte, form []string) (*memory, error) {
	if len(b) > MaxUnpacked {
		return nil, fail("Image", "%d MiB, more than %d", len(b)>>20, MaxUnpacked>>20)
	}
	a := rawArch(b)
	if len(form) == 1 {
		b = slices.Clone(b) // relocations are written, and it is the caller's
	}
	return &memory{arch: a, form: strings.Join(form, "/"), segments: []segment{{0, b}}}, nil
}

// readELF finds the segments of an ELF file, and nothing else of it. They stay where they are.
func readELF(b []byte, form []string) (*memory, error) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, fail("ELF file", "%s", cutShort(err))
	}
	m := &memory{arch: ofMachine(f.Machine), form: strings.Join(form, "/")}
	switch {
	case m.arch == nil:
		return nil, fail("ELF file", "instruction set %s is none of %s", f.Machine, archNames())
	case f.Class != elf.ELFCLASS64 || f.ByteOrder != le:
		return nil, fail("ELF file", "%s, %s: want 64 bits, little endian", f.Class, f.Data)
	case f.Type == elf.ET_REL:
		return nil, fail("ELF file", "a module or object, not a kernel")
	}
	sum := uint64(0)
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Filesz == 0 || p.Vaddr < 1<<20 { // x86's per-CPU data is linked at 0 until 6.15
			continue
		}
		if sum += p.Filesz; p.Filesz > MaxUnpacked || sum > MaxUnpacked || p.Vaddr+p.Filesz < p.Vaddr {
			return nil, fail("ELF file", "its segments take more than %d MiB", MaxUnpacked>>20)
		}
		if p.Off > uint64(len(b)) || p.Filesz > uint64(len(b))-p.Off {
			return nil, fail("ELF file", "segment at %#x is cut short", p.Vaddr)
		}
		m.segments = append(m.segments, segment{p.Vaddr, b[p.Off : p.Off+p.Filesz : p.Off+p.Filesz]})
	}
	if len(m.segments) == 0 {
		return nil, fail("ELF file", "holds no segment of a kernel")
	}
	slices.SortFunc(m.segments, func(a, b segment) int { return cmp.Compare(a.addr, b.addr) })
	return m, nil
}

func archNames() string {
	var names []string
	for _, a := range arches {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}
