// SPDX-License-Identifier: Apache-2.0

//go:build linux

#include "textflag.h"

// func store1(p unsafe.Pointer, v uint8)
TEXT ·store1(SB), NOSPLIT, $0-9
	MOVQ p+0(FP), AX
	MOVB v+8(FP), CX
	MOVB CX, (AX)
	RET

// func store2(p unsafe.Pointer, v uint16)
TEXT ·store2(SB), NOSPLIT, $0-10
	MOVQ p+0(FP), AX
	MOVW v+8(FP), CX
	MOVW CX, (AX)
	RET

// func store4(p unsafe.Pointer, v uint32)
TEXT ·store4(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET

// func serialize()
// IRET is a serializing instruction (Intel SDM vol. 3, 9.3; AMD APM vol. 2, 7.6.4), and the one
// that no hypervisor takes: it returns from here, as the kernel's iret_to_self does
// (arch/x86/include/asm/sync_core.h, Linux 6.12).
TEXT ·serialize(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ (SP), AX
	LEAQ 8(SP), CX
	XORL DX, DX
	MOVW SS, DX
	PUSHQ DX
	PUSHQ CX
	PUSHFQ
	MOVW CS, DX
	PUSHQ DX
	PUSHQ AX
	IRETQ
