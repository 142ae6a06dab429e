// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

// arch is what differs between the kernels of instruction sets.
type arch struct {
	name     string
	machine  elf.Machine
	magic    string // at 0x38 of a raw image (Documentation/arch/arm64/booting.rst, riscv/boot-image-header.rst)
	relative uint64 // type of a relocation that adds the base alone
	calls    func(code, func(to uint64))
	refs     func(code, func(to uint64))
	site     func(b []byte) bool                 // what a compiler leaves for a tracer
	pad      func(b []byte) bool                 // where an indirect branch may land
	record   func(k *Kernel, mark uint64) uint64 // from what the compiler marked to what is patched
}

var arches = []*arch{{
	name: x86_64.Name, machine: elf.EM_X86_64,
	calls: callsX86, refs: refsX86, site: siteX86, pad: padX86, record: recordX86,
}, {
	name: arm64.Name, machine: elf.EM_AARCH64, magic: "ARM\x64", relative: uint64(elf.R_AARCH64_RELATIVE),
	calls: callsARM64, refs: refsARM64, site: siteARM64, pad: padARM64, record: recordARM64,
}, {
	name: riscv64.Name, machine: elf.EM_RISCV, magic: "RSC\x05", relative: uint64(elf.R_RISCV_RELATIVE),
	calls: callsRISCV, refs: refsRISCV, site: siteRISCV, pad: padRISCV, record: recordRISCV,
}}

// ofMachine is the instruction set of an ELF file, nil if it is none of ours.
func ofMachine(m elf.Machine) *arch {
	for _, a := range arches {
		if a.machine == m {
			return a
		}
	}
	return nil
}

// recordX86: the call that the compiler emitted is what is patched.
func recordX86(_ *Kernel, mark uint64) uint64 { return mark }

// recordARM64 is ftrace_call_adjust (arch/arm64/kernel/ftrace.c): with literals for
// ops two words precede the entry, then comes a landing pad where there is one; the
// second of the two patchable words is the site.
func recordARM64(k *Kernel, mark uint64) uint64 {
	if k.CallOps() {
		mark += 8
		if padARM64(k.at(mark)) {
			mark += 4
		}
	}
	return mark + 4
}

// recordRISCV is ftrace_call_adjust (arch/riscv/kernel/ftrace.c): with literals for ops
// eight bytes precede the entry, and the site is its auipc's jalr, or as of 6.16
// the second word.
func recordRISCV(k *Kernel, mark uint64) uint64 {
	if k.CallOps() {
		return mark + 12
	}
	return mark
}

func siteX86(b []byte) bool {
	return len(b) >= 5 && (b[0] == 0xe8 || string(b[:5]) == "\x0f\x1f\x44\x00\x00")
}

func siteARM64(b []byte) bool {
	const nop = "\x1f\x20\x03\xd5"
	return len(b) >= 8 && string(b[:8]) == nop+nop
}

func siteRISCV(b []byte) bool {
	return len(b) >= 4 && (le.Uint32(b) == 0x00000013 || le.Uint32(b) == 0x00010001)
}

// padX86 is endbr64.
func padX86(b []byte) bool { return len(b) >= 4 && string(b[:4]) == "\xf3\x0f\x1e\xfa" }

// padARM64 is bti c, j or jc.
func padARM64(b []byte) bool { return len(b) >= 4 && le.Uint32(b)&0xffffff3f == 0xd503241f }

// padRISCV: Linux builds no landing pads into riscv64's kernel.
func padRISCV([]byte) bool { return false }
