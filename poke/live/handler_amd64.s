// SPDX-License-Identifier: Apache-2.0

//go:build linux

#include "go_asm.h"
#include "textflag.h"

// Where the registers of the interrupted thread lie in the third argument of a signal
// handler (struct ucontext, arch/x86/include/uapi/asm/sigcontext.h, Linux 6.12).
#define CONTEXT_R9 48(DX)
#define CONTEXT_R13 80(DX)
#define CONTEXT_RBX 128(DX)
#define CONTEXT_RSP 160(DX)
#define CONTEXT_RIP 168(DX)
#define CONTEXT_EFLAGS 176(DX)

// The flags that a thread must not go on with: trap, direction, alignment check.
#define FLAGS_OFF ~0x40500

#define SIGTRAP 5

// Why there is a signal: si_code of siginfo (include/uapi/asm-generic/siginfo.h, Linux 6.12). What another
// thread or process has sent has none above 0; a breakpoint's is SI_KERNEL, a single step's is not.
#define SIGINFO_CODE 8(SI)
#define SI_KERNEL 0x80

// handler is called by the kernel on the thread's signal stack: DI signal, SI siginfo, DX context.
// It does what poke_int3_handler does (arch/x86/kernel/alternative.c), and knows
// nothing of Go. Go gets what somebody has sent, and what does not come from a thread in foreign code.
TEXT ·handler(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	CMPL SIGINFO_CODE, $0
	JLE  chain
	MOVQ CONTEXT_R13, R13
	MOVQ R13, R8
	SUBQ ·blocksBase(SB), R8
	CMPQ R8, ·blocksSize(SB)
	JAE  chain
	TESTQ $(const_blockBytes-1), R8
	JNE  chain
	CMPQ block_in(R13), $0
	JEQ  chain
	CMPL DI, $SIGTRAP
	JNE  fault
	CMPL SIGINFO_CODE, $SI_KERNEL
	JNE  fault
	MOVQ CONTEXT_RIP, R9
	DECQ R9 // the breakpoint
	MOVQ R9, R8
	SUBQ ·textBase(SB), R8
	CMPQ R8, ·textSize(SB)
	JAE  fault
	INCQ block_traps(R13)
enter: // take a reference, unless there is none to be had (raw_atomic_inc_not_zero)
	MOVL block_refs(R13), AX
	TESTL AX, AX
	JEQ  nobody
	LEAL 1(AX), CX
	LOCK
	CMPXCHGL CX, block_refs(R13)
	JNE  enter
	MOVQ ·published(SB), SI // how many, their addresses ascending, what each acts as
	TESTQ SI, SI
	JEQ  absent
	XORL CX, CX
	MOVQ (SI), BX
search:
	CMPQ CX, BX
	JAE  absent
	LEAQ (CX)(BX*1), R10
	SHRQ $1, R10
	INCQ block_comparisons(R13)
	MOVQ 8(SI)(R10*8), R11
	CMPQ R9, R11
	JEQ  found
	JHI  above
	MOVQ R10, BX
	JMP  search
above:
	LEAQ 1(R10), CX
	JMP  search
found:
	MOVQ (SI), BX
	ADDQ BX, R10
	MOVQ 8(SI)(R10*8), R11
	LOCK
	DECL block_refs(R13)
	INCQ block_hits(R13)
	ADDQ ·siteLen(SB), R9
	TESTQ R11, R11
	JEQ  go
	// Acts as the call (int3_emulate_call): pushes the address behind it.
	MOVQ CONTEXT_RSP, SI
	SUBQ $8, SI
	MOVQ R9, (SI)
	MOVQ SI, CONTEXT_RSP
	MOVQ R11, R9
go:
	MOVQ R9, CONTEXT_RIP
	RET
absent:
	LOCK
	DECL block_refs(R13)
nobody: // the breakpoint may have gone meanwhile (kprobe_int3_handler until Linux 6.2)
	CMPQ ·unforgiving(SB), $0
	JNE  unhandled
	CMPB (R9), $0xcc
	JEQ  unhandled
	INCQ block_misses(R13)
	JMP  go
unhandled: // a kernel would die; here only the call ends
	INCQ block_unhandled(R13)
	CMPQ (block_missed+Finding_Site)(R13), $0
	JNE  bail
	MOVQ (R9), AX
	MOVQ AX, (block_missed+Finding_Bytes)(R13)
	MOVQ R9, (block_missed+Finding_Site)(R13)
	JMP  bail

fault: // the call of the site ends here, marked
	INCQ block_faults(R13)
	CMPQ (block_fault+Finding_Signal)(R13), $0
	JNE  bail
	MOVL DI, AX
	MOVQ AX, (block_fault+Finding_Signal)(R13)
	MOVQ CONTEXT_RIP, AX
	MOVQ AX, (block_fault+Finding_PC)(R13)
	MOVQ CONTEXT_R9, CX
	MOVQ CX, (block_fault+Finding_Site)(R13)
	MOVQ CX, R8
	SUBQ ·textBase(SB), R8
	CMPQ R8, ·textSize(SB)
	JAE  bail
	MOVQ (CX), AX
	MOVQ AX, (block_fault+Finding_Bytes)(R13)
bail:
	MOVQ block_sp(R13), SI
	MOVQ -8(SI), AX // where the loop's call returns to
	MOVQ SI, CONTEXT_RSP
	MOVQ AX, CONTEXT_RIP
	MOVQ $const_calledFault, AX
	MOVQ AX, CONTEXT_RBX
	MOVQ CONTEXT_EFLAGS, AX
	ANDQ $FLAGS_OFF, AX
	MOVQ AX, CONTEXT_EFLAGS
	RET

chain:
	MOVL DI, AX
	LEAQ ·chained(SB), CX
	MOVQ (CX)(AX*8), AX
	JMP  AX

// restorer returns from a signal: rt_sigreturn.
TEXT ·restorer(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ $15, AX
	SYSCALL
	INT $3

// func handlerPC() (handler, restorer uintptr)
TEXT ·handlerPC(SB), NOSPLIT, $0-16
	LEAQ ·handler(SB), AX
	MOVQ AX, handler+0(FP)
	LEAQ ·restorer(SB), AX
	MOVQ AX, restorer+8(FP)
	RET
