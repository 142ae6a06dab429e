// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"errors"
	"math/bits"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

var errUnknown = errors.New("instruction is not known")

// The kinds of instructions that do something if a condition holds: the upper half of the byte that
// has the condition's number (Intel SDM vol. 2, appendix B.1.4.7).
const (
	shortJump = 0x7 // without 0f before it
	move      = 0x4 // with it
	nearJump  = 0x8
	set       = 0x9
)

// conditional is an instruction's kind and condition; ok is false for others, and for those that
// ask for parity, which is not kept.
func conditional(in *x86asm.Inst) (kind, condition int, ok bool) {
	code, kinds := int(in.Opcode>>24), []int{shortJump}
	if code == 0x0f {
		code, kinds = int(in.Opcode>>16&0xff), []int{move, nearJump, set}
	}
	return code >> 4, code & 15, slices.Contains(kinds, code>>4) && code&14 != 10
}

// execute does what an instruction says, and tells which one comes next.
func (m *Machine) execute(in *x86asm.Inst, next uint64) (to uint64, err error) {
	switch in.Op {
	case x86asm.NOP, x86asm.PAUSE, x86asm.LFENCE, x86asm.MFENCE, x86asm.SFENCE:
		return next, nil
	case x86asm.RET:
		return m.pop(), nil
	case x86asm.LEAVE:
		m.regs[4] = m.regs[5]
		m.regs[5] = m.pop()
		return next, nil
	}
	if m.strings(in) {
		return next, nil
	}
	width := max(in.DataSize/8, 1)
	var args [3]operand
	for i := range args {
		if in.Args[i] == nil {
			break
		}
		if i > 0 {
			width = args[0].bytes
		}
		if args[i], err = m.operand(in, i, width, next); err != nil {
			return 0, err
		}
	}
	a, b := args[0], args[1]
	if kind, condition, ok := conditional(in); ok {
		yes := m.holds(condition)
		switch {
		case kind == move && !yes:
			a.store(a.load()) // 32 bits clear the upper half all the same
		case kind == move:
			a.store(b.load())
		case kind == set:
			a.store(map[bool]uint64{true: 1}[yes])
		case yes:
			return a.value, nil
		}
		return next, nil
	}
	switch in.Op {
	case x86asm.JMP:
		return a.load(), nil
	case x86asm.CALL:
		to := a.load()
		m.push(next)
		return to, nil
	case x86asm.PUSH:
		m.push(extend(a.load(), a.bytes))
	case x86asm.POP:
		a.store(m.pop())
	default:
		if !m.move(in, a, b) && !m.arithmetic(in, args) && !m.bits(in, a, b) {
			return 0, errUnknown
		}
	}
	return next, nil
}

// stringBytes is how many bytes a string instruction moves at a time.
var stringBytes = map[x86asm.Op]uint64{x86asm.STOSB: 1, x86asm.STOSW: 2, x86asm.STOSD: 4, x86asm.STOSQ: 8,
	x86asm.MOVSB: 1, x86asm.MOVSW: 2, x86asm.MOVSD: 4, x86asm.MOVSQ: 8}

// strings does stos and movs, upwards, as often as a prefix says.
func (m *Machine) strings(in *x86asm.Inst) bool {
	n, ok := stringBytes[in.Op]
	if !ok || in.Op == x86asm.MOVSD && in.Opcode>>24 != 0xa5 { // the other one moves a floating-point number
		return false
	}
	rax, rcx, rsi, rdi := m.regs[0], &m.regs[1], &m.regs[6], &m.regs[7]
	times := uint64(1)
	for _, p := range in.Prefix {
		if p&0xff == 0xf3 {
			times, *rcx = min(*rcx, pageBytes), 0
		}
	}
	for range times {
		if what := le.AppendUint64(nil, rax)[:n]; in.Op >= x86asm.STOSB && in.Op <= x86asm.STOSW {
			m.Store(*rdi, what)
		} else {
			m.Store(*rdi, m.Load(*rsi, int(n)))
			*rsi += n
		}
		*rdi += n
	}
	return true
}

// move does what changes no flag.
func (m *Machine) move(in *x86asm.Inst, a, b operand) bool {
	rax, rdx := &m.regs[0], &m.regs[2]
	switch in.Op {
	case x86asm.MOV, x86asm.MOVZX:
		a.store(b.load())
	case x86asm.MOVSX, x86asm.MOVSXD:
		a.store(extend(b.load(), b.bytes))
	case x86asm.LEA:
		a.store(b.addr)
	case x86asm.NOT:
		a.store(^a.load())
	case x86asm.XCHG:
		old := a.load()
		a.store(b.load())
		b.store(old)
	case x86asm.CDQE:
		*rax = extend(*rax, 4)
	case x86asm.CWDE:
		*rax = extend(*rax, 2) & mask(4)
	case x86asm.CQO:
		*rdx = uint64(int64(*rax) >> 63)
	case x86asm.CDQ:
		*rdx = uint64(int64(extend(*rax, 4))>>63) & mask(4)
	default:
		return false
	}
	return true
}

// arithmetic does what computes, and sets the flags.
func (m *Machine) arithmetic(in *x86asm.Inst, args [3]operand) bool {
	a, b := args[0], args[1]
	n := a.bytes
	switch in.Op {
	case x86asm.ADD:
		a.store(m.add(a.load(), b.load(), false, n))
	case x86asm.ADC:
		a.store(m.add(a.load(), b.load(), m.carry, n))
	case x86asm.SUB:
		a.store(m.sub(a.load(), b.load(), false, n))
	case x86asm.SBB:
		a.store(m.sub(a.load(), b.load(), m.carry, n))
	case x86asm.CMP:
		m.sub(a.load(), b.load(), false, n)
	case x86asm.NEG:
		a.store(m.sub(0, a.load(), false, n))
	case x86asm.INC, x86asm.DEC:
		carry, one := m.carry, uint64(1)
		if in.Op == x86asm.DEC {
			one = mask(n)
		}
		a.store(m.add(a.load(), one, false, n))
		m.carry = carry
	case x86asm.AND:
		a.store(m.logic(a.load()&b.load(), n))
	case x86asm.OR:
		a.store(m.logic(a.load()|b.load(), n))
	case x86asm.XOR:
		a.store(m.logic(a.load()^b.load(), n))
	case x86asm.TEST:
		m.logic(a.load()&b.load(), n)
	case x86asm.IMUL: // flags are of no use to a compiler
		if args[2].bytes > 0 {
			a.store(extend(b.load(), n) * extend(args[2].load(), n))
		} else if b.bytes > 0 {
			a.store(a.load() * b.load())
		} else {
			return false
		}
	case x86asm.XADD:
		old := a.load()
		sum := m.add(old, b.load(), false, n)
		b.store(old)
		a.store(sum)
	case x86asm.CMPXCHG:
		rax := operand{m: m, bytes: n}
		if m.sub(rax.load(), a.load(), false, n); m.zero {
			a.store(b.load())
		} else {
			rax.store(a.load())
		}
	default:
		return false
	}
	return true
}

// bits does shifts and what looks for single bits.
func (m *Machine) bits(in *x86asm.Inst, a, b operand) bool {
	n := a.bytes
	switch in.Op {
	case x86asm.SHL, x86asm.SHR, x86asm.SAR:
		by := b.load() & 31
		if n == 8 {
			by = b.load() & 63
		}
		if by == 0 {
			a.store(a.load()) // 32 bits clear the upper half all the same
			break
		}
		v := a.load()
		switch in.Op {
		case x86asm.SHL:
			m.carry = v>>(uint64(8*n)-by)&1 == 1
			v <<= by
		case x86asm.SHR:
			m.carry = v>>(by-1)&1 == 1
			v >>= by
		default:
			v = extend(v, n)
			m.carry = v>>(by-1)&1 == 1
			v = uint64(int64(v) >> by)
		}
		m.result(v, n)
		a.store(v)
	case x86asm.BT, x86asm.BTS, x86asm.BTR:
		if a.reg < 0 {
			return false // of memory, the bit may lie far from the address
		}
		bit := uint64(1) << (b.load() % uint64(8*n))
		m.carry = a.load()&bit != 0
		if in.Op == x86asm.BTS {
			a.store(a.load() | bit)
		} else if in.Op == x86asm.BTR {
			a.store(a.load() &^ bit)
		}
	case x86asm.TZCNT, x86asm.BSF:
		v := b.load()
		m.zero, m.carry = v == 0, v == 0
		if v != 0 {
			a.store(uint64(bits.TrailingZeros64(v)))
			m.zero = in.Op == x86asm.TZCNT && v&1 == 1
		} else if in.Op == x86asm.TZCNT {
			a.store(uint64(8 * n))
			m.zero = false
		}
	case x86asm.BSR:
		v := b.load()
		if m.zero = v == 0; v != 0 {
			a.store(uint64(bits.Len64(v) - 1))
		}
	default:
		return false
	}
	return true
}

// flags are those of the last result. Parity is not kept.
type flags struct{ zero, sign, carry, overflow bool }

// result sets the flags of a number of so many bytes.
func (f *flags) result(v uint64, bytes int) {
	f.zero, f.sign = v&mask(bytes) == 0, v>>(8*bytes-1)&1 == 1
}

// logic is the result of and, or, xor, test.
func (f *flags) logic(v uint64, bytes int) uint64 {
	f.carry, f.overflow = false, false
	f.result(v, bytes)
	return v
}

// add is a + b, and a carry.
func (f *flags) add(a, b uint64, carry bool, bytes int) uint64 {
	v := a + b
	if carry {
		v++
	}
	top := 8*bytes - 1
	f.carry = (a&b|(a|b)&^v)>>top&1 == 1
	f.overflow = (a^v)&(b^v)>>top&1 == 1
	f.result(v, bytes)
	return v
}

// sub is a - b, and a borrow.
func (f *flags) sub(a, b uint64, borrow bool, bytes int) uint64 {
	v := a - b
	if borrow {
		v--
	}
	top := 8*bytes - 1
	f.carry = (^a&b|(^a|b)&v)>>top&1 == 1
	f.overflow = (a^b)&(a^v)>>top&1 == 1
	f.result(v, bytes)
	return v
}

// holds tells whether a condition holds, as instructions number them: overflow, below,
// equal, below or equal, sign, parity, less, less or equal, and each the other way round.
func (f *flags) holds(condition int) bool {
	var yes bool
	switch condition >> 1 {
	case 0:
		yes = f.overflow
	case 1:
		yes = f.carry
	case 2:
		yes = f.zero
	case 3:
		yes = f.carry || f.zero
	case 4:
		yes = f.sign
	case 6:
		yes = f.sign != f.overflow
	case 7:
		yes = f.zero || f.sign != f.overflow
	}
	return yes != (condition&1 == 1)
}
