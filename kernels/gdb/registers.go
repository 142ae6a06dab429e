// SPDX-License-Identifier: Apache-2.0

package gdb

import (
	_ "embed"
	"encoding/binary"
	"slices"

	"github.com/textpoke/textpoke/internal/sheet"
)

// Layout is how a server tells the registers of an architecture: 64 bits each, in this order, before all others
// (gdb/features/i386/64bit-core.xml, aarch64-core.xml and riscv/64bit-cpu.xml, which QEMU has in gdb-xml), and which
// of them the C calling convention uses for what.
type Layout struct {
	Arch   string   `col:"arch,key"`
	Names  []string `col:"registers"`
	PC     string   `col:"pc"`
	SP     string   `col:"sp"`
	Args   []string `col:"arguments"`
	Return string   `col:"return,maybe"` // where a function returns to; "" where that lies on the stack
}

//go:embed registers.csv
var layoutTable string

var layouts = sheet.Must[Layout]("registers.csv", layoutTable)

// LayoutOf is the layout of an architecture: x86_64, arm64 or riscv64; nil for others.
func LayoutOf(arch string) *Layout {
	for i := range layouts {
		if layouts[i].Arch == arch {
			return &layouts[i]
		}
	}
	return nil
}

// Registers are those of a CPU that stands still.
type Registers struct {
	layout *Layout
	raw    []byte // as the server sent them, little endian
}

// PC is the instruction pointer, SP the stack pointer, and Arg an argument of the function that is being entered,
// from 0.
func (r Registers) PC() uint64       { return r.of(r.layout.PC) }
func (r Registers) SP() uint64       { return r.of(r.layout.SP) }
func (r Registers) Arg(i int) uint64 { return r.of(r.layout.Args[i]) }

// Link is where the function that is being entered returns to; false where that is the word that SP points at.
func (r Registers) Link() (uint64, bool) { return r.Get(r.layout.Return) }

// Flags is what the server tells in 32 bits behind these registers, on x86_64 eflags; 0 where it tells nothing.
func (r Registers) Flags() (flags uint32) {
	if behind := r.raw[8*len(r.layout.Names):]; len(behind) >= 4 {
		flags = binary.LittleEndian.Uint32(behind)
	}
	return flags
}

// Get is the value of a register, by gdb's name for it; false if the architecture has none of that name.
func (r Registers) Get(name string) (uint64, bool) {
	i := slices.Index(r.layout.Names, name)
	if i < 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(r.raw[8*i:]), true
}

func (r Registers) of(name string) uint64 {
	value, _ := r.Get(name) // a register of the layout
	return value
}
