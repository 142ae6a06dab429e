// SPDX-License-Identifier: Apache-2.0

package vmlinux

import "debug/elf"

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
	for _, a := range arches {
		if a.Machine == m {
			return a
		}
	}
	return nil
}
