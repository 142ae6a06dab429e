// SPDX-License-Identifier: Apache-2.0

//go:build linux

#include "go_asm.h"
#include "textflag.h"

// func stretch(b *block, calls int64, list *uint64)
//
// Calls sites at random, so many times or until b.stop. Half of the calls go to the
// sites in flight while there are any.
//
// R12 calls left, R13 block, R10 random, R8 list, R9 the site's address,
// SI its promise, R11 what that was before the call
TEXT ·stretch(SB), NOSPLIT, $32-24
	MOVQ b+0(FP), R13
	MOVQ calls+8(FP), R12
	MOVQ list+16(FP), R8
	MOVQ SP, block_sp(R13)
	MOVQ block_random(R13), R10
	MOVQ $1, block_in(R13)
loop:
	DECQ R12
	JLT  done
	CMPQ block_stop(R13), $0
	JNE  done
	MOVQ R10, AX // xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8(14), 2003)
	SHLQ $13, AX
	XORQ AX, R10
	MOVQ R10, AX
	SHRQ $7, AX
	XORQ AX, R10
	MOVQ R10, AX
	SHLQ $17, AX
	XORQ AX, R10
	MOVL R10, AX
	MOVQ ·inFlight(SB), CX
	TESTQ CX, CX
	JEQ  any
	TESTQ R10, R10
	JLT  picked
any:
	MOVQ R8, CX
picked:
	MOVQ (CX), DX
	IMULQ DX, AX
	SHRQ $32, AX
	MOVQ 8(CX)(AX*8), DI
	MOVL DI, R9
	ADDQ ·textBase(SB), R9
	SHRQ $32, DI
	MOVQ ·promisesBase(SB), SI
	LEAQ (SI)(DI*8), SI
	MOVQ (SI), R11
	INCQ block_begun(R13)
	XORL BX, BX
	MOVQ R9, block_at(R13)
	CALL R9
	CMPQ BX, $const_calledTracer
	JHI  astray
	JEQ  marked
	INCQ block_untraced(R13)
marked:
	MOVQ R11, AX
	ANDQ $const_promiseBits, AX
	JEQ  loop
	DECQ AX
	CMPQ AX, BX
	JEQ  loop
	CMPQ R11, (SI) // not what was promised: is the promise still there?
	JNE  loop
	TESTQ AX, AX
	JEQ  stale
	INCQ block_lost(R13)
	JMP  broken
stale:
	INCQ block_stale(R13)
broken:
	CMPQ (block_broken+Finding_Site)(R13), $0
	JNE  loop
	MOVQ (R9), AX
	MOVQ AX, (block_broken+Finding_Bytes)(R13)
	MOVQ R9, (block_broken+Finding_Site)(R13)
	JMP  loop
astray: // counted elsewhere
	CMPQ BX, $const_calledWrong
	JNE  loop
	CMPQ (block_landed+Finding_Site)(R13), $0
	JNE  loop
	MOVQ (R9), AX
	MOVQ AX, (block_landed+Finding_Bytes)(R13)
	MOVQ R9, (block_landed+Finding_Site)(R13)
	JMP  loop
done:
	MOVQ $0, block_in(R13)
	MOVQ R10, block_random(R13)
	RET

// func callSite(b *block, at uintptr, calls int64)
//
// Calls one site so many times, and does nothing else.
TEXT ·callSite(SB), NOSPLIT, $32-24
	MOVQ b+0(FP), R13
	MOVQ at+8(FP), R9
	MOVQ calls+16(FP), R12
	MOVQ SP, block_sp(R13)
	MOVQ $1, block_in(R13)
again:
	DECQ R12
	JLT  out
	INCQ block_begun(R13)
	XORL BX, BX
	CALL R9
	CMPQ BX, $const_calledNobody
	JNE  again
	INCQ block_untraced(R13)
	JMP  again
out:
	MOVQ $0, block_in(R13)
	RET

// func spin(rounds int64)
//
// Is in user code, and at no site.
TEXT ·spin(SB), NOSPLIT, $0-8
	MOVQ rounds+0(FP), CX
round:
	DECQ CX
	JGT  round
	RET

// func callOnce(b *block, at uintptr) (called uint64)
//
// Calls one site, unless b.stop, and tells what BL says when it comes back. Nobody reads the calls that
// reached nobody: they are those begun that reached no tracer.
TEXT ·callOnce(SB), NOSPLIT, $32-24
	MOVQ b+0(FP), R13
	MOVQ at+8(FP), R9
	CMPQ block_in(R13), $0
	JNE  twice
	MOVQ SP, block_sp(R13)
	MOVQ $1, block_in(R13)
	CMPQ block_stop(R13), $0
	JNE  halted
	INCQ block_begun(R13)
	XORL BX, BX
	CALL R9
	MOVQ $0, block_in(R13)
	MOVBQZX BX, AX
	MOVQ AX, called+16(FP)
	RET
halted:
	MOVQ $0, block_in(R13)
	MOVQ $const_calledNever, called+16(FP)
	RET
twice:
	MOVQ $const_calledTwice, called+16(FP)
	RET
