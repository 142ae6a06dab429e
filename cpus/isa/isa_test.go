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
