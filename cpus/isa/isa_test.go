// SPDX-License-Identifier: Apache-2.0

package isa

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestTextIsBytes compares Text with the bytes in memory that it stands for.
func TestTextIsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "memory")
		other := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "other")
		off := rapid.IntRange(0, 7).Draw(t, "off")
		n := rapid.IntRange(0, 8-off).Draw(t, "n")
		text := TextOf(mem...)
		if got := text.Bytes(8); !bytes.Equal(got, mem) {
			t.Fatalf("bytes %x, want %x", got, mem)
		}
		if got := text.Slice(off, n).Bytes(n); !bytes.Equal(got, mem[off:off+n]) {
			t.Errorf("slice %d+%d of %x is %x", off, n, mem, got)
		}
		if rest := text.Slice(off, n) &^ Mask(n); rest != 0 {
			t.Errorf("slice %d+%d of %x has more than its bytes", off, n, mem)
		}
		want := append([]byte(nil), mem...)
		copy(want[off:off+n], other)
		if got := text.Splice(off, n, TextOf(other...)).Bytes(8); !bytes.Equal(got, want) {
			t.Errorf("%x with %x at %d+%d is %x, want %x", mem, other, off, n, got, want)
		}
	})
}

func TestFormat(t *testing.T) {
	if got := TextOf(0x0f, 0x1f, 0x44, 0, 0).Format(5); got != "0f 1f 44 00 00" {
		t.Errorf("%q", got)
	}
}

// TestKinds: instructions are spelled as disassemblers do, and those that go elsewhere are told apart.
func TestKinds(t *testing.T) {
	away := map[InsnKind]bool{Call: true, Jump: true, Breakpoint: true, Return: true}
	for kind, want := range map[InsnKind]string{
		Unknown: "unknown", Nop: "nop", Call: "call 0xffffffff81000010", Jump: "jump 0xffffffff81000010", Breakpoint: "breakpoint",
		Scratch: "scratch", Return: "return", Plain: "plain",
	} {
		if got := (Insn{Kind: kind, Target: 0xffffffff81000010}).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if kind.LeadsAway() != away[kind] {
			t.Errorf("%s leads away: %v", kind, kind.LeadsAway())
		}
	}
}

// TestMask: eight bytes are all there are.
func TestMask(t *testing.T) {
	for n, want := range map[int]Text{0: 0, 1: 0xff, 7: 0xff_ffff_ffff_ffff, 8: 0xffff_ffff_ffff_ffff, 9: 0xffff_ffff_ffff_ffff} {
		if got := Mask(n); got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, uint64(got), uint64(want))
		}
	}
}

// TestErrors: the errors name the record, the place and the limit.
func TestErrors(t *testing.T) {
	for want, err := range map[string]error{
		"arm64: literal of record 0xffff800080000004 is not aligned to 8 bytes": &MisalignedError{"arm64", 0xffff800080000004,
			"literal", 8},
		"arm64: site 0xffff800080000010 cannot reach 0xffff900000000000: beyond 128 MiB and no PLT slot in reach": &ReachError{
			"arm64", 0xffff800080000010, 0xffff900000000000, 128 << 20},
	} {
		if err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
