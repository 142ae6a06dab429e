// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/kernels/image"
)

// load is where a function of x86_64 loads a variable while its arguments are where its caller put them.
type load struct {
	variable uint64
	bytes    int
	behind   uint64 // the next instruction
	until    uint64 // where arguments may no longer be there, or a branch has been taken
	grown    uint64 // bytes of stack below the word that the function returns to
}

// has tells whether a CPU that has stopped at the load stands there. QEMU may stop it where the code ends that it
// translated in one piece, at a branch at the latest.
func (l load) has(pc uint64) bool { return l.variable != 0 && l.behind <= pc && pc <= l.until }

// loaded is a variable that __text_poke loads early (BUG_ON(!after_bootmem), arch/x86/kernel/alternative.c, Linux 5.0
// to 7.3), and hardly any other function of a kernel that has booted.
const loaded = "after_bootmem"

// earlyLoad finds where a function loads that variable. The call that a function may begin with is a tracer's, which
// changes no argument.
func earlyLoad(k *image.Kernel, function uint64) (l load, ok bool) {
	variable, there := k.Addr(loaded)
	if !there || k.Arch.Name != x86_64.Name {
		return l, false
	}
	code := k.At(function)
	for pc := function; ; {
		in, err := x86asm.Decode(code[pc-function:], 64)
		if err != nil {
			return l, false
		}
		next := pc + uint64(in.Len)
		if m, is := in.Args[1].(x86asm.Mem); is && m.Base == x86asm.RIP && m.Segment == 0 && next+uint64(m.Disp) == variable {
			l.variable, l.bytes, l.behind, l.until = variable, in.MemBytes, next, next+branch(code[next-function:])
			return l, in.Op == x86asm.MOV && keepsArguments(in)
		}
		size, imm := in.Args[1].(x86asm.Imm)
		switch {
		case in.Op == x86asm.CALL && pc == function || in.Op == x86asm.NOP:
		case in.Op == x86asm.PUSH:
			l.grown += 8
		case in.Op == x86asm.SUB && in.Args[0] == x86asm.RSP && imm:
			l.grown += uint64(size)
		case keepsArguments(in):
		default:
			return l, false
		}
		pc = next
	}
}

// branch is how many bytes of code keep all arguments, up to the next branch and with it.
func branch(code []byte) (n uint64) {
	for {
		in, err := x86asm.Decode(code[n:], 64)
		_, branches := in.Args[0].(x86asm.Rel)
		if branches = branches && in.Op != x86asm.CALL; err != nil || !branches && !keepsArguments(in) {
			return n
		}
		if n += uint64(in.Len); branches {
			return n
		}
	}
}

// keepers are instructions that write to their first argument alone, or nowhere.
var keepers = []x86asm.Op{x86asm.MOV, x86asm.LEA, x86asm.AND, x86asm.XOR, x86asm.TEST, x86asm.CMP}

// free are registers that hold no argument, and no stack.
var free = []x86asm.Reg{x86asm.RAX, x86asm.RBX, x86asm.RBP,
	x86asm.R10, x86asm.R11, x86asm.R12, x86asm.R13, x86asm.R14, x86asm.R15}

// keepsArguments tells whether an instruction writes to memory, or to a register that is free.
func keepsArguments(in x86asm.Inst) bool {
	r, is := in.Args[0].(x86asm.Reg)
	if r >= x86asm.EAX && r <= x86asm.R15L { // the lower half of a register
		r += x86asm.RAX - x86asm.EAX
	}
	return slices.Contains(keepers, in.Op) && (!is || slices.Contains(free, r))
}
