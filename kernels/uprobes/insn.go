// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"bytes"
	"fmt"
)

// Insn is what stands at a probe's site, as far as it matters to what a probe costs.
type Insn uint8

// The instructions.
const (
	Other Insn = iota // such as push %rbp: the probe stays a breakpoint
	Nop1              // 90: likewise, what sys/sdt.h of systemtap leaves
	Nop5              // 0f 1f 44 00 00: can become a call
	Nop10             // 66 2e 0f 1f 84 00 00 00 00 00: can become lea and call
	insns
)

var insnNames = [insns]string{"other", "nop1", "nop5", "nop10"}

func (i Insn) String() string {
	if i < insns {
		return insnNames[i]
	}
	return fmt.Sprintf("Insn(%d)", uint8(i))
}

// InsnNames lists the names of all instructions.
func InsnNames() []string { return insnNames[:] }

// bytesOf is how the instructions are written; Nop5 is x86_nops[5] and Nop10 is the
// successor's (arch/x86/include/asm/nops.h; tip ba2bfc97b462, linux-next
// 554ba38456da).
var bytesOf = [insns][]byte{
	Nop1:  {0x90},
	Nop5:  {0x0f, 0x1f, 0x44, 0x00, 0x00},
	Nop10: {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
}

// Len is how many bytes the instruction takes; 0 where that is not known.
func (i Insn) Len() int { return len(bytesOf[i]) }

// insnAt tells which instruction some text begins with.
func insnAt(text []byte) Insn {
	for i := Nop1; i < insns; i++ {
		if bytes.HasPrefix(text, bytesOf[i]) {
			return i
		}
	}
	return Other
}

// pageSize is that of x86-64, in bytes.
const pageSize = 4096

// crosses tells whether some bytes lie on two pages. Those are not replaced: "We can't
// do cross page atomic writes yet" (arch/x86/kernel/uprobes.c, can_optimize, Linux
// 6.18).
func crosses(at uint64, n int) bool { return at%pageSize+uint64(n) > pageSize }
