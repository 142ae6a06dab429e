// SPDX-License-Identifier: Apache-2.0

// Package emulate executes functions of an x86-64 kernel's image, instruction by
// instruction, on a memory of its own: the image's bytes, zeros elsewhere, and its own
// stores. Hooks stand in for functions that reach beyond the code, such as those that
// interrupt other CPUs. An instruction that it does not know ends the call with an error:
// it guesses nothing.
//
// It knows the instructions that compilers make of integer code, and no others: no floating
// point, no string instructions, no system registers. Segment gs begins at 0. There is one
// CPU, and nothing interrupts it.
package emulate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

var le = binary.LittleEndian

// Machine is one CPU and its memory.
type Machine struct {
	// Hooks run in place of the functions at these addresses, which return then.
	Hooks map[uint64]func(m *Machine)
	// Steps bounds the instructions of one call.
	Steps int

	image func(addr uint64) []byte // of the kernel from an address on, nil outside
	pages map[uint64]*[pageBytes]byte
	regs  [16]uint64 // in the order of their numbers in instructions: rax, rcx, rdx, rbx, rsp, ...
	rip   uint64
	flags
	decoded map[uint64]x86asm.Inst
	heap    uint64
}

const (
	pageBytes    = 4096
	defaultSteps = 4 << 20
	stackTop     = 0x7fff_f000_0000 // below the kernel's half, as is the heap
	heapBase     = 0x7fff_0000_0000
	returned     = 0x7fff_ffff_f000 // where a call of ours returns to
)

// New makes a machine of an image's bytes; image returns those from an address on.
func New(image func(addr uint64) []byte) *Machine {
	return &Machine{Hooks: map[uint64]func(*Machine){}, Steps: defaultSteps, image: image,
		pages: map[uint64]*[pageBytes]byte{}, decoded: map[uint64]x86asm.Inst{}, heap: heapBase}
}

// Arg is an argument of the function that a hook stands in for, counted from 0 (System V ABI).
func (m *Machine) Arg(i int) uint64 { return m.regs[[...]int{7, 6, 2, 1, 8, 9}[i]] }

// Return sets what the function returns that a hook stands in for.
func (m *Machine) Return(v uint64) { m.regs[0] = v }

// Alloc gives zeroed memory of its own.
func (m *Machine) Alloc(bytes uint64) uint64 {
	at := m.heap
	m.heap += (bytes + 2*pageBytes) &^ (pageBytes - 1)
	return at
}

// Store writes bytes.
func (m *Machine) Store(addr uint64, b []byte) {
	for len(b) > 0 {
		n := copy(m.page(addr)[addr%pageBytes:], b)
		addr, b = addr+uint64(n), b[n:]
	}
}

// Load reads so many bytes.
func (m *Machine) Load(addr uint64, n int) []byte {
	out := make([]byte, n)
	for done := 0; done < n; {
		at := addr + uint64(done)
		if p := m.pages[at/pageBytes]; p != nil {
			done += copy(out[done:], p[at%pageBytes:])
			continue
		}
		end := min(n, done+int(pageBytes-at%pageBytes))
		copy(out[done:end], m.image(at))
		done = end
	}
	return out
}

// page is the page of an address, the image's copied before it is written.
func (m *Machine) page(addr uint64) *[pageBytes]byte {
	p := m.pages[addr/pageBytes]
	if p == nil {
		p = new([pageBytes]byte)
		start := addr &^ (pageBytes - 1)
		for i := uint64(0); i < pageBytes; i++ { // a segment may begin inside of the page
			if b := m.image(start + i); b != nil {
				copy(p[i:], b)
				break
			}
		}
		m.pages[addr/pageBytes] = p
	}
	return p
}

var errSteps = errors.New("it does not come to an end")

// Call executes a function until it returns, and gives what it returns.
func (m *Machine) Call(fn uint64, args ...uint64) (uint64, error) {
	m.regs = [16]uint64{4: stackTop}
	for i, v := range args {
		m.regs[[...]int{7, 6, 2, 1, 8, 9}[i]] = v
	}
	m.push(returned)
	m.rip = fn
	for range m.Steps {
		if m.rip == returned {
			return m.regs[0], nil
		}
		if hook := m.Hooks[m.rip]; hook != nil {
			hook(m)
			m.rip = m.pop()
			continue
		}
		if err := m.step(); err != nil {
			return 0, fmt.Errorf("at %#x: %w", m.rip, err)
		}
	}
	return 0, fmt.Errorf("at %#x: %w", m.rip, errSteps)
}

// longest is how many bytes an instruction has, at most.
const longest = 15

// endbr64 is a nop that the decoder does not know.
const endbr64 = 0xfa1e0ff3

// step executes one instruction.
func (m *Machine) step() error {
	in, ok := m.decoded[m.rip]
	if !ok {
		text := m.Load(m.rip, longest)
		if le.Uint32(text) == endbr64 {
			in = x86asm.Inst{Op: x86asm.NOP, Len: 4}
		} else {
			var err error
			if in, err = x86asm.Decode(text, 64); err != nil {
				return fmt.Errorf("bytes % x: %w", text, err)
			}
		}
		m.decoded[m.rip] = in
	}
	next := m.rip + uint64(in.Len)
	to, err := m.execute(&in, next)
	if err != nil {
		return fmt.Errorf("%s: %w", x86asm.GNUSyntax(in, m.rip, nil), err)
	}
	m.rip = to
	return nil
}

func (m *Machine) push(v uint64) {
	m.regs[4] -= 8
	m.Store(m.regs[4], le.AppendUint64(nil, v))
}

func (m *Machine) pop() uint64 {
	v := le.Uint64(m.Load(m.regs[4], 8))
	m.regs[4] += 8
	return v
}

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
