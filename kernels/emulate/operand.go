// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"errors"
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// register is where a register lies: its number, its first byte, and how many.
func register(r x86asm.Reg) (number, shift, bytes int, ok bool) {
	switch {
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL), 0, 1, true
	case r >= x86asm.AH && r <= x86asm.BH:
		return int(r - x86asm.AH), 8, 1, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + 4, 0, 1, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX), 0, 2, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX), 0, 4, true
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX), 0, 8, true
	}
	return 0, 0, 0, false
}

// mask is so many bytes of ones.
func mask(bytes int) uint64 { return ^uint64(0) >> (64 - 8*bytes) }

// extend makes 64 bits of a number with a sign.
func extend(v uint64, bytes int) uint64 { return uint64(int64(v<<(64-8*bytes)) >> (64 - 8*bytes)) }

// address is what a reference to memory means; next is the instruction behind.
func (m *Machine) address(a x86asm.Mem, next uint64) (uint64, error) {
	if a.Segment != 0 && a.Segment != x86asm.GS && a.Segment != x86asm.DS && a.Segment != x86asm.CS && a.Segment != x86asm.SS {
		return 0, fmt.Errorf("segment %s", a.Segment)
	}
	base, err := m.part(a.Base, 1, next)
	if err != nil {
		return 0, err
	}
	index, err := m.part(a.Index, uint64(a.Scale), next)
	return base + index + extend(uint64(a.Disp), 4), err // the decoder does not extend the sign
}

// part is what a register adds to an address.
func (m *Machine) part(r x86asm.Reg, scale, next uint64) (uint64, error) {
	switch n, _, bytes, ok := register(r); {
	case r == 0:
		return 0, nil
	case r == x86asm.RIP:
		return next, nil
	case ok && bytes == 8:
		return m.regs[n] * scale, nil
	}
	return 0, fmt.Errorf("address by %s", r)
}

var errOperand = errors.New("operand is not known")

// operand is one of an instruction's: where to read and write it, and how many bytes it has.
type operand struct {
	m      *Machine
	reg    int // -1: memory, or a number
	shift  int
	addr   uint64
	number bool
	value  uint64 // of a number
	bytes  int
}

// operand finds operand i. width is how many bytes a number has.
func (m *Machine) operand(in *x86asm.Inst, i, width int, next uint64) (operand, error) {
	switch a := in.Args[i].(type) {
	case x86asm.Reg:
		n, shift, bytes, ok := register(a)
		if !ok {
			return operand{}, fmt.Errorf("%w: %s", errOperand, a)
		}
		return operand{m: m, reg: n, shift: shift, bytes: bytes}, nil
	case x86asm.Mem:
		at, err := m.address(a, next)
		return operand{m: m, reg: -1, addr: at, bytes: in.MemBytes}, err
	case x86asm.Imm:
		return operand{reg: -1, number: true, value: uint64(a), bytes: width}, nil
	case x86asm.Rel:
		return operand{reg: -1, number: true, value: next + uint64(int64(a)), bytes: 8}, nil
	}
	return operand{}, errOperand
}

// load is the value, of the operand's bytes.
func (o operand) load() uint64 {
	switch {
	case o.number:
		return o.value & mask(o.bytes)
	case o.reg >= 0:
		return o.m.regs[o.reg] >> o.shift & mask(o.bytes)
	}
	var b [8]byte
	copy(b[:], o.m.Load(o.addr, o.bytes))
	return le.Uint64(b[:])
}

// store writes the value. Of a register, 32 bits clear the upper half, fewer leave the rest.
func (o operand) store(v uint64) {
	v &= mask(o.bytes)
	if o.reg < 0 {
		o.m.Store(o.addr, le.AppendUint64(nil, v)[:o.bytes])
		return
	}
	if o.bytes < 4 {
		v = v<<o.shift | o.m.regs[o.reg]&^(mask(o.bytes)<<o.shift)
	}
	o.m.regs[o.reg] = v
}
