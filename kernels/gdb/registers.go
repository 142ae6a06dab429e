// SPDX-License-Identifier: Apache-2.0

package gdb

import (
	_ "embed"
	"encoding/binary"
	"encoding/csv"
	"slices"
	"strings"
	"sync"
)

// Layout is how a server tells the registers of an architecture: 64 bits each, in this order, before all others
// (gdb/features/i386/64bit-core.xml, aarch64-core.xml and riscv/64bit-cpu.xml, which QEMU has in gdb-xml), and which
// of them the C calling convention uses for what.
type Layout struct {
	names  []string
	pc, sp int
	args   []int
	ret    int // where a function returns to; -1 where that lies on the stack
}

//go:embed registers.csv
var layoutTable string

var layouts = sync.OnceValue(func() map[string]*Layout {
	rows, err := csv.NewReader(strings.NewReader(layoutTable)).ReadAll()
	if err != nil {
		panic(err) // a table of ours
	}
	out := map[string]*Layout{}
	for _, r := range rows[1:] {
		l := &Layout{names: strings.Fields(r[1])}
		l.pc, l.sp, l.ret = slices.Index(l.names, r[2]), slices.Index(l.names, r[3]), slices.Index(l.names, r[5])
		for _, a := range strings.Fields(r[4]) {
			l.args = append(l.args, slices.Index(l.names, a))
		}
		out[r[0]] = l
	}
	return out
})

// LayoutOf is the layout of an architecture: x86_64, arm64 or riscv64; nil for others.
func LayoutOf(arch string) *Layout { return layouts()[arch] }

// Registers are those of a CPU that stands still.
type Registers struct {
	layout *Layout
	raw    []byte // as the server sent them, little endian
}

func (r Registers) at(i int) uint64 { return binary.LittleEndian.Uint64(r.raw[8*i:]) }

// PC is the instruction pointer, SP the stack pointer, and Arg an argument of the function that is being entered,
// from 0.
func (r Registers) PC() uint64       { return r.at(r.layout.pc) }
func (r Registers) SP() uint64       { return r.at(r.layout.sp) }
func (r Registers) Arg(i int) uint64 { return r.at(r.layout.args[i]) }

// Link is where the function that is being entered returns to; false where that is the word that SP points at.
func (r Registers) Link() (uint64, bool) {
	if r.layout.ret < 0 {
		return 0, false
	}
	return r.at(r.layout.ret), true
}

// Flags is what the server tells in 32 bits behind these registers, on x86_64 eflags; 0 where it tells nothing.
func (r Registers) Flags() (flags uint32) {
	if behind := r.raw[8*len(r.layout.names):]; len(behind) >= 4 {
		flags = binary.LittleEndian.Uint32(behind)
	}
	return flags
}

// Get is the value of a register, by gdb's name for it; false if the architecture has none of that name.
func (r Registers) Get(name string) (uint64, bool) {
	i := slices.Index(r.layout.names, name)
	if i < 0 {
		return 0, false
	}
	return r.at(i), true
}
