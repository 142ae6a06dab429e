// SPDX-License-Identifier: Apache-2.0

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

// New makes a machine of what an image holds from an address on.
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

// endbr64 is a nop of which the decoder does not know.
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
