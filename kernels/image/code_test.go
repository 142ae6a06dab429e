// SPDX-License-Identifier: Apache-2.0

package image

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = le.AppendUint32(b, v)
	}
	return b
}

// TestDecoders: calls and addresses as the manuals encode them, at 0x1000.
func TestDecoders(t *testing.T) {
	for _, tt := range []struct {
		arch, what string
		bytes      []byte
		calls      []uint64
		refs       []uint64
	}{
		{x86_64.Name, "call 0x2000", []byte{0xe8, 0xfb, 0x0f, 0, 0}, []uint64{0x2000}, nil},
		{x86_64.Name, "jmp 0xf00", []byte{0xe9, 0xfb, 0xfe, 0xff, 0xff}, []uint64{0xf00}, nil},
		{x86_64.Name, "mov $0xffffffff81234567,%rdi", []byte{0x48, 0xc7, 0xc7, 0x67, 0x45, 0x23, 0x81}, nil,
			[]uint64{0xffffffff81234567}},
		{x86_64.Name, "lea 0x10(%rip),%rdi", []byte{0x48, 0x8d, 0x3d, 0x10, 0, 0, 0}, nil, []uint64{0x1017}},
		{arm64.Name, "bl 0x2000", words(0x94000400), []uint64{0x2000}, nil},
		{arm64.Name, "b 0xffc", words(0x17ffffff), []uint64{0xffc}, nil},
		{arm64.Name, "adrp x0, 0x5000; add x0, x0, #0x18", words(0x90000020, 0x91006000), nil, []uint64{0x5018}},
		{riscv64.Name, "auipc ra, 1; jalr 16(ra)", words(0x00001097, 0x010080e7), []uint64{0x2010}, nil},
		{riscv64.Name, "jal ra, 0x1800", words(0x001000ef), []uint64{0x1800}, nil},
		{riscv64.Name, "jal zero, 0xffc", words(0xffdff06f), []uint64{0xffc}, nil},
		{riscv64.Name, "auipc a0, 2; addi a0, a0, -8", words(0x00002517, 0xff850513), nil, []uint64{0x2ff8}},
	} {
		c := code{0x1000, tt.bytes}
		var calls, refs []uint64
		decoders[tt.arch].calls(c, func(to uint64) { calls = append(calls, to) })
		decoders[tt.arch].refs(c, func(to uint64) { refs = append(refs, to) })
		if !slices.Equal(calls, tt.calls) || !slices.Equal(refs, tt.refs) {
			t.Errorf("%s %s: calls %#x, refs %#x, want %#x and %#x", tt.arch, tt.what, calls, refs, tt.calls, tt.refs)
		}
	}
}
