// SPDX-License-Identifier: Apache-2.0

package records

import (
	"slices"

	"github.com/textpoke/textpoke/internal/release"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Instructions that tell how an entry is laid out.
const (
	x86Endbr64 = 0xfa1e0ff3
	x86Nop     = 0x90

	armNop     = 0xd503201f
	armBTI     = 0xd503241f // bti, bti c, bti j, bti jc differ in two bits
	armBTIMask = 0xffffff3f
	armBL      = 0x94000000
	armBLMask  = 0xfc000000

	riscvNop  = 0x00000013
	riscvCNop = 0x0001
)

// text is code with the functions in it: a kernel's, or an ELF file's as if it were a kernel's.
type text struct{ *vmlinux.Kernel }

// functionAt tells whether a function starts there.
func (t text) functionAt(addr uint64) bool {
	return slices.ContainsFunc(t.Starting(addr), func(s vmlinux.Symbol) bool { return s.IsText() })
}

// word is the four bytes at an address, zeros where the code ends. ok is false where there is none.
func (t text) word(addr uint64) (insn uint32, ok bool) {
	var b [4]byte
	n := copy(b[:], t.At(addr))
	return le.Uint32(b[:]), n > 0
}

// prefixBytes is what an architecture with per-site ops (CALL_OPS) reserves in
// front of a function: room for a pointer.
const prefixBytes = 8

// recordX86 is the entry itself, or behind its landing pad (ftrace_call_adjust,
// arch/x86/kernel/ftrace.c). Kernels never list NOPs in front of a function, but
// programs compiled with -fpatchable-function-entry=N,M do: their records are
// behind those, where the function starts.
func recordX86(t text, entry uint64) uint64 {
	at := entry
	if fn := t.After(entry); fn != nil && !t.functionAt(entry) && !t.functionAt(entry-4) && filled(t, entry, fn.Addr, x86Nop) {
		at = fn.Addr
	}
	if padX86(t, at) {
		return at + 4
	}
	return at
}

// x86PrefixMax bounds the NOPs in front of a function, in bytes. Kernels have 16
// for call thunks.
const x86PrefixMax = 64

// filled tells whether all bytes from one address to another, not far behind it,
// are the same.
func filled(t text, from, to uint64, with byte) bool {
	if to-from > x86PrefixMax {
		return false
	}
	for at := from; at < to; at++ {
		if insn, ok := t.word(at); !ok || byte(insn) != with {
			return false
		}
	}
	return true
}

// recordARM64 follows ftrace_call_adjust in arch/arm64/kernel/ftrace.c, Linux
// 6.3 and later: with per-site ops the entry is 8 bytes before the function and
// the record behind its first NOP and landing pad; without, the entry is the
// first of two NOPs and the record the second; a call to mcount is the record.
// The symbols tell which, or the NOPs where there are none. Where the kernel
// would refuse the record as misaligned it is kept here.
func recordARM64(t text, entry uint64) uint64 {
	if insn, ok := t.word(entry); ok && insn&armBLMask == armBL {
		return entry
	}
	if !prefixed(t, entry, armPrefix) {
		return entry + 4
	}
	fn := entry + prefixBytes
	if padARM64(t, fn) {
		fn += 4
	}
	return fn + 4
}

// armPrefix looks for two NOPs, a landing pad or none, and two more NOPs.
func armPrefix(t text, entry uint64) bool {
	at := entry
	for n := range 4 {
		insn, ok := t.word(at)
		if n == 2 && padARM64(t, at) {
			at += 4
			insn, ok = t.word(at)
		}
		if !ok || insn != armNop {
			return false
		}
		at += 4
	}
	return true
}

// recordRISCV follows ftrace_call_adjust in arch/riscv/kernel/ftrace.c. With per-site ops the
// entry lies 8 bytes before its function. Since Linux 6.16 the record is the second
// instruction, behind auipc; before, auipc itself.
func recordRISCV(t text, entry uint64) uint64 {
	if prefixed(t, entry, riscvPrefix) {
		return entry + prefixBytes + 4
	}
	if r, err := release.Of(t.Release); err == nil && r.Before(release.Numbers{6, 16}) {
		return entry
	}
	return entry + 4 // where no release is told, too
}

// riscvPrefix looks for 16 bytes of NOPs of either length.
func riscvPrefix(t text, entry uint64) bool {
	for at := entry; at < entry+2*prefixBytes; {
		insn, ok := t.word(at)
		switch {
		case ok && insn == riscvNop:
			at += 4
		case ok && insn&0xffff == riscvCNop:
			at += 2
		default:
			return false
		}
	}
	return true
}

// prefixed tells whether an entry lies before its function. A function starting
// right there says no, one starting behind the prefix says yes, one starting
// at a landing pad in front says no; without symbols the code says it.
func prefixed(t text, entry uint64, look func(text, uint64) bool) bool {
	switch {
	case t.functionAt(entry + prefixBytes): // first: a section's label may stand at the entry
		return true
	case t.functionAt(entry), t.functionAt(entry - 4):
		return false
	}
	return look(t, entry)
}

// padX86 tells whether an endbr64 stands there.
func padX86(t text, at uint64) bool {
	insn, ok := t.word(at)
	return ok && insn == x86Endbr64
}

// padARM64 tells whether a bti stands there: c, j or jc.
func padARM64(t text, at uint64) bool {
	insn, ok := t.word(at)
	return ok && insn&armBTIMask == armBTI
}

// nopX86 tells whether a compiler left something for a tracer there: a call or a nop of
// five bytes.
func nopX86(t text, at uint64) bool {
	insn, ok := t.word(at)
	return ok && (byte(insn) == 0xe8 || insn == 0x00441f0f)
}

func nopARM64(t text, at uint64) bool {
	first, _ := t.word(at)
	second, _ := t.word(at + 4)
	return first == armNop && second == armNop
}

func nopRISCV(t text, at uint64) bool {
	insn, ok := t.word(at)
	return ok && (insn == riscvNop || insn == riscvCNop<<16|riscvCNop)
}
