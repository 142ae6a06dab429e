// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
)

// u32 is a word of a frame.
func u32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// TestHeaders: what a standard frame's header says (lz4_Frame_format.md): sums, sizes and names are passed over, and a
// block holds up to 64 KiB, 256 KiB, 1 MiB or 4 MiB.
func TestHeaders(t *testing.T) {
	const magic, plain = "\x04\x22\x4d\x18", 1 << 31
	end := u32(0)
	zeros := func(n int) string { b := lz4Block(make([]byte, n)); return u32(len(b)) + string(b) }
	most := 64 << 10
	bound := most + most/255 + 16
	for i, c := range []struct{ frame, want string }{
		{"\x60\x40\x00" + u32(plain|3) + "abc" + end, "3 bytes"},
		{"\x60\x40\x00" + u32(plain|3) + "abc" + u32(plain|2) + "de" + end, "5 bytes"},
		{"\x60\x40\x00" + u32(plain|3) + "abc" + u32(plain|2) + "de", "cut short"},
		{"\x60\x40\x00" + u32(plain|3) + "ab", "cut short"},
		{"\x70\x40\x00" + u32(plain|3) + "abc" + "SUMS" + end, "3 bytes"},
		{"\x70\x40\x00" + u32(plain|3) + "abc" + "SUM", "cut short"},
		{"\x68\x40" + "SIZE8888" + "\x00" + u32(plain|3) + "abc" + end, "3 bytes"},
		{"\x61\x40" + "NAME" + "\x00" + u32(plain|3) + "abc" + end, "3 bytes"},
		{"\x79\x40" + "SIZE8888" + "NAME" + "\x00" + u32(plain|3) + "abc" + "SUMS" + end, "3 bytes"},
		{"\x64\x40\x00" + u32(plain|3) + "abc" + end + "SUMS", "3 bytes"},
		{"\x60\x30\x00", "a frame of an unknown version"}, {"\x20\x40\x00", "a frame of an unknown version"},
		{"\xe0\x40\x00", "a frame of an unknown version"}, {"\x40\x40\x00",
			"its blocks hang together (lz4 -BD), which is not read"},
		{"", "cut short"}, {"\x60\x40", "cut short"},
		{"\x60\x40\x00" + zeros(most) + end, "65536 bytes"}, {"\x60\x40\x00" + zeros(most+1) + end, "corrupt block"},
		{"\x60\x50\x00" + zeros(most+1) + end, "65537 bytes"}, {"\x60\x50\x00" + zeros(4*most+1) + end, "corrupt block"},
		{"\x60\x60\x00" + zeros(16*most) + end, "1048576 bytes"}, {"\x60\x60\x00" + zeros(16*most+1) + end, "corrupt block"},
		{"\x60\x70\x00" + zeros(64*most) + end, "4194304 bytes"}, {"\x60\x70\x00" + zeros(64*most+1) + end, "corrupt block"},
		{"\x60\xf0\x00" + zeros(64*most) + end, "4194304 bytes"}, // the highest bit says nothing
		{"\x60\x40\x00" + u32(plain|bound) + strings.Repeat("x", bound) + end, fmt.Sprint(bound, " bytes")},
		{"\x60\x40\x00" + u32(plain|(bound+1)) + strings.Repeat("x", bound+1) + end, fmt.Sprintf("a block of %d bytes",
			bound+1)},
		{"\x60\x40\x00" + u32(1) + "\xf0" + end, "corrupt block"},
	} {
		got := ""
		r, err := openLZ4(strings.NewReader(magic + c.frame))
		if err == nil {
			var b []byte
			b, err = io.ReadAll(r)
			got = fmt.Sprint(len(b), " bytes")
		}
		if err != nil {
			got = Reason(err)
		}
		if got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// TestLegacyEnds: a legacy frame ends with its input, with a word behind which nothing comes, or with one that can be
// no
// block's length.
func TestLegacyEnds(t *testing.T) {
	const magic = "\x02\x21\x4c\x18"
	block := string(lz4Block([]byte("abc")))
	bound := lz4Legacy + lz4Legacy/255 + 16
	for i, c := range []struct{ frame, want string }{
		{u32(4) + block, "abc"}, {u32(4) + block + u32(4) + block, "abcabc"}, {"", ""}, {u32(0), ""},
		{u32(4) + block + u32(3), "abc"}, {u32(4) + block + u32(0) + block, "abc"},
		{u32(4) + block + u32(bound+1) + block, "abc"}, {u32(4) + block + u32(bound) + block, "cut short"},
		{u32(4) + block + "\x00", "cut short"}, {u32(4) + block[:3], "cut short"},
		{u32(4) + block + u32(1) + "\xf0", "corrupt block"},
	} {
		r, err := openLZ4(strings.NewReader(magic + c.frame))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		got := string(b)
		if err != nil {
			got = Reason(err)
		}
		if got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	if _, err := openLZ4(strings.NewReader("\x02\x21")); Reason(err) != "cut short" {
		t.Error(err)
	}
}

// TestLimits: as much as the limit is unpacked, and the limit is named where there is more.
func TestLimits(t *testing.T) {
	text := bytes.Repeat([]byte("abcd"), 1<<19)
	b := legacyFrame(text)
	for _, b := range [][]byte{b, binary.LittleEndian.AppendUint32(b, uint32(len(text)))} {
		for limit, want := range map[int]string{len(text): "<nil>", len(text) - 1: ": lz4 data: unpacks to more than 1 MiB",
			2<<20 + 1: "<nil>"} {
			got, err := Of(b).Bytes(b, limit)
			if fmt.Sprint(err) != want || err == nil && !bytes.Equal(got, text) {
				t.Errorf("%d at most: %d bytes, %v, want %s", limit, len(got), err, want)
			}
		}
	}
	if Of([]byte("none")) != nil || Of(nil) != nil {
		t.Error("text is packed")
	}
}
