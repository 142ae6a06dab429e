// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
)

// framed is a frame as the format's description has it, byte by byte.
func framed(number, synced uint64, chain [16]byte, payload string) []byte {
	rest := binary.BigEndian.AppendUint64(nil, number)
	rest = binary.BigEndian.AppendUint64(rest, synced)
	rest = append(append(rest, chain[:]...), payload...)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(rest, crc32.MakeTable(crc32.Castagnoli)))
	return append(b, rest...)
}

// TestFrameBytes: a frame is the bytes of its description, its link is of the link before, of its number and payload;
// and it is read again, whatever follows.
func TestFrameBytes(t *testing.T) {
	before := [16]byte{1, 2, 3}
	text := append(append([]byte{}, before[:]...), 0, 0, 0, 0, 0, 0, 1, 2)
	sum := sha256.Sum256(append(text, "{}"...))
	chain := link(before).after(258, []byte("{}"))
	if !bytes.Equal(chain[:], sum[:16]) {
		t.Errorf("link %x, want %x", chain, sum[:16])
	}
	want := framed(258, 255, chain, "{}")
	if got := appendFrame([]byte("x"), frame{number: 258, synced: 255, link: chain,
		payload: []byte("{}")}); string(got) != "x"+
		string(want) {
		t.Errorf("%x, want %x", got[1:], want)
	}
	f, ok := parseFrame(append(slices.Clone(want), "more"...))
	if !ok || f.number != 258 || f.synced != 255 || f.link != chain || string(f.payload) != "{}" || f.size != len(want) ||
		frameLen(want[:4]) != len(want) {
		t.Errorf("%+v, %v", f, ok)
	}
	for n := range want {
		if _, ok := parseFrame(want[:n]); ok {
			t.Errorf("%d bytes of it are a frame", n)
		}
		harmed := slices.Clone(want)
		if harmed[n] ^= 0x40; n > 0 { // the first is of a length beyond the end
			harmed = append(harmed, make([]byte, 1<<16)...)
		}
		if _, ok := parseFrame(harmed); ok {
			t.Errorf("byte %d is another, and it is a frame", n)
		}
	}
	if _, ok := parseFrame(framed(1, 1, chain, "")); ok {
		t.Error("a frame without a payload")
	}
	for n, want := range map[uint32]int{0: 40, 1: 41, 1 << 28: 40 + 1<<28, 1<<28 + 1: 40 + 1<<28} {
		if got := frameLen(binary.BigEndian.AppendUint32(nil, n)); got != want {
			t.Errorf("of %d bytes it has %d, want %d", n, got, want)
		}
	}
	if frameLen([]byte{0, 0, 1}) != 0 {
		t.Error("three bytes have a length")
	}
}

// TestNextFrame: the first whole frame with a number between two others, wherever it begins.
func TestNextFrame(t *testing.T) {
	chain := [16]byte{9}
	five, six := framed(5, 1, chain, "five"), framed(6, 1, chain, "six")
	broken := slices.Clone(five)
	broken[len(broken)-1] ^= 1
	b := slices.Concat(make([]byte, 50), broken, five, six)
	at5, at6 := 50+len(broken), 50+len(broken)+len(five)
	for _, c := range []struct {
		damaged, before uint64
		want            int
	}{{4, 6, at5}, {4, 5, -1}, {5, 7, at6}, {5, 6, -1}, {6, 9, -1}, {3, 9, at5}} {
		if got := nextFrame(b, c.damaged, c.before); got != c.want {
			t.Errorf("between %d and %d at %d, want %d", c.damaged, c.before, got, c.want)
		}
	}
	if got := nextFrame(six, 5, 7); got != 0 {
		t.Errorf("all that there is: at %d", got)
	}
}

// TestHeadTakesTurns: two places are written in turn, the one with the larger number counts, and the other one is
// written
// next; a place that is half written says nothing.
func TestHeadTakesTurns(t *testing.T) {
	d := newSimDisk(rand.New(rand.NewPCG(1, 1)))
	opened := func(number uint64, place int64) *head {
		t.Helper()
		h, got, chain, err := openHead(d)
		if err != nil || got != number || h.place != place || number > 0 && chain[0] != byte(number) {
			t.Fatalf("frame %d, %x, next is place %d, %v; want %d, %d", got, chain, h.place, err, number, place)
		}
		return h
	}
	h := opened(0, 0)
	for n := uint64(1); n <= 5; n++ {
		if err := h.put(n, link{byte(n)}); err != nil {
			t.Fatal(err)
		}
		h = opened(n, int64(n%2))
	}
	text := d.names[headName].cache
	for place, number := range []uint64{5, 4} { // the fifth lies at place 0
		if want := framed(number, 0, [16]byte{byte(number)}, "{}"); !bytes.HasPrefix(text[512*place:], want) {
			t.Errorf("place %d: %x, want %x", place, text[512*place:512*place+len(want)], want)
		}
	}
	text[41] ^= 1
	opened(4, 0)
	d.names[headName].cache = text[:512+41]
	opened(0, 0)
}

// TestLinksAsText: sixteen bytes in hexadecimal digits, and nothing else.
func TestLinksAsText(t *testing.T) {
	l := link{0xab, 15: 1}
	text, err := l.MarshalText()
	if err != nil || string(text) != "ab000000000000000000000000000001" {
		t.Errorf("%s, %v", text, err)
	}
	var got link
	if err := got.UnmarshalText(text); err != nil || got != l {
		t.Errorf("%x, %v", got, err)
	}
	if err := got.UnmarshalText(text[:30]); err == nil ||
		err.Error() != `"ab0000000000000000000000000000": want 16 bytes` {
		t.Error(err)
	}
	var wrong hex.InvalidByteError
	if err := got.UnmarshalText([]byte("x" + string(text[1:]))); !errors.As(err, &wrong) {
		t.Error(err)
	}
}
