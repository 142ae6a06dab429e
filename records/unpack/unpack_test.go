// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

// legacyFrame packs as lz4 -l does: a greedy search by the last place of the same four bytes
// (github.com/lz4/lz4, doc/lz4_Block_format.md: the last five bytes of a block are literals).
func legacyFrame(b []byte) []byte {
	out := []byte("\x02\x21\x4c\x18")
	for len(b) > 0 {
		n := min(len(b), 8<<20)
		block := lz4Block(b[:n])
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(block))), block...)
		b = b[n:]
	}
	return out
}

func lz4Block(b []byte) (out []byte) {
	length := func(n int) {
		for n -= 15; n >= 0; n -= 255 {
			out = append(out, byte(min(n, 255)))
		}
	}
	last, from := map[uint32]int{}, 0
	for at := 0; at+12 < len(b); at++ {
		four := binary.LittleEndian.Uint32(b[at:])
		before, ok := last[four]
		if last[four] = at; !ok || at-before > 0xffff {
			continue
		}
		n := 4
		for at+n < len(b)-5 && b[before+n] == b[at+n] {
			n++
		}
		out = append(out, byte(min(at-from, 15)<<4|min(n-4, 15)))
		length(at - from)
		out = binary.LittleEndian.AppendUint16(append(out, b[from:at]...), uint16(at-before))
		length(n - 4)
		from = at + n
		at = from - 1
	}
	out = append(out, byte(min(len(b)-from, 15)<<4))
	length(len(b) - from)
	return append(out, b[from:]...)
}

// texts are what is packed: one byte, what repeats itself, what cannot be packed, more than
// a block of any packing, something short.
func texts() map[string][]byte {
	const block = 8 << 20 // of lz4's legacy frame, the largest
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	words := make([]byte, 0, block+100_000)
	for len(words) < block+50_000 {
		at := random.IntN(len(noise) - 300)
		words = append(words, noise[at:at+random.IntN(300)]...)
		words = append(words, bytes.Repeat(noise[at:at+1+random.IntN(5)], random.IntN(100))...)
	}
	return map[string][]byte{"one": {7}, "zeros": make([]byte, 100_000), "noise": noise, "words": words,
		"short": []byte("abcabcabcabcabcabcabc")}
}

// TestLegacyLZ4: frames as the kernel's build makes them, with the size behind them.
func TestLegacyLZ4(t *testing.T) {
	for name, text := range texts() {
		packed := legacyFrame(text)
		for _, b := range [][]byte{packed, binary.LittleEndian.AppendUint32(packed, uint32(len(text)))} {
			got, err := Of(b).Bytes(b, 16<<20)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(text), err)
			}
		}
	}
}

// TestLZ4Refuses: blocks that hang together, frames that end early and every single byte that is another
// one are refused or unpack to no more than a block; nothing panics.
func TestLZ4Refuses(t *testing.T) {
	text := texts()["words"][:2000]
	packed := legacyFrame(text)
	p := Of(packed)
	for at := 4; at < len(packed); at++ {
		for _, bit := range []byte{1, 0x80, 0xff} {
			harmed := bytes.Clone(packed)
			harmed[at] ^= bit
			if got, err := p.Bytes(harmed, 16<<20); err == nil && bytes.Equal(got, text) && at < 12 {
				t.Errorf("byte %d: nothing was noticed", at)
			}
		}
		if got, err := p.Bytes(packed[:at], 16<<20); err == nil && len(got) > 0 {
			t.Errorf("%d of %d bytes unpack to %d", at, len(packed), len(got))
		}
	}
	for frame, want := range map[string]string{
		"\x04\x22\x4d\x18\x40\x40\xc0":                             "its blocks hang together (lz4 -BD), which is not read",
		"\x04\x22\x4d\x18\xa0\x40\xc0":                             "a frame of an unknown version",
		"\x04\x22\x4d\x18\x60":                                     "cut short",
		"\x04\x22\x4d\x18\x60\x40\x82":                             "cut short", // no end mark
		"\x04\x22\x4d\x18\x60\x40\x82\x00\x00\x02\x00":             "a block of 131072 bytes",
		"\x04\x22\x4d\x18\x60\x40\x82\x03\x00\x00\x00\x00\x01\x00": "corrupt block", // a match 1 before the beginning
	} {
		if _, err := Of([]byte(frame)).Bytes([]byte(frame), 1<<20); err == nil || err.Error() != ": lz4 data: "+want {
			t.Errorf("%x: %v, want %s", frame, err, want)
		}
	}
}

// TestPrograms: what the packers' own programs make, in the ways in which the kernel's build
// calls them (scripts/Makefile.lib), and with more behind it. Cut off anywhere, it is refused
// in one line.
func TestPrograms(t *testing.T) {
	all := texts()
	for _, c := range []struct {
		packing, command string
		slow             bool // as another one, but with a gigabyte
	}{
		{"gzip", "gzip -n -9", false}, {"bzip2", "bzip2 -9", false}, {"lzma", "lzma -9", true},
		{"lzma", "xz --format=lzma -9", false}, {"xz", "xz --check=crc32 --x86 --lzma2=dict=32MiB", false}, {"xz", "xz -9e", true},
		{"zstd", "zstd -19", false}, {"zstd", "zstd -22 --ultra", true}, {"lz4", "lz4 -l -9", false}, {"lz4", "lz4 -9", false},
		{"lz4", "lz4 -B4 -BX", false},
	} {
		if c.slow && testing.Short() {
			continue
		}
		argv := strings.Fields(c.command)
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Logf("skipped: %v", err)
			continue
		}
		for name, text := range all {
			if c.packing != "lz4" { // the others take up to a gigabyte to begin, whatever they pack
				if name != "words" && (name != "one" || testing.Short()) {
					continue
				}
				text = text[:min(len(text), 1<<16)]
			}
			cmd := exec.Command(argv[0], append(argv[1:], "-c")...)
			cmd.Stdin = bytes.NewReader(text)
			packed, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", c.command, err)
			}
			p := Of(packed)
			if p == nil || p.Name != c.packing {
				t.Errorf("%s: not recognised", c.command)
				continue
			}
			for _, b := range [][]byte{packed, binary.LittleEndian.AppendUint32(packed, uint32(len(text)))} {
				if got, err := p.Bytes(b, 16<<20); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%s of %s: %d bytes of %d, %v", c.command, name, len(got), len(text), err)
				}
			}
			if _, err := p.Bytes(packed[:len(packed)/2], 16<<20); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s of %s, half of it: %v", c.command, name, err)
			}
			if _, err := p.Bytes(packed, len(text)-1); len(text) > 1 && (err == nil || !strings.Contains(err.Error(), "unpacks to more than")) {
				t.Errorf("%s of %s, one byte too long: %v", c.command, name, err)
			}
		}
	}
}

// TestAll: whatever was likely, all of it is read and no more than the limit.
func TestAll(t *testing.T) {
	text := texts()["words"][:8_400_000]
	for _, likely := range []int{0, 1, 100, 8 << 20, len(text) - 1, len(text), len(text) + 1, 2 * len(text)} {
		got, err := All(bytes.NewReader(text), likely, len(text))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("likely %d: %d bytes, %v", likely, len(got), err)
		}
		if likely >= len(text) && cap(got) != likely+1 {
			t.Errorf("likely %d: the bytes have been copied into %d", likely, cap(got))
		}
		if _, err := All(bytes.NewReader(text), likely, len(text)-1); err == nil {
			t.Errorf("likely %d: over the limit", likely)
		}
		if _, err := All(io.MultiReader(bytes.NewReader(text), broken{}), likely, len(text)); err != io.ErrClosedPipe {
			t.Errorf("likely %d: %v", likely, err)
		}
	}
}

// TestLikelySize: the four bytes that the build appends count if nothing is packed to a
// twentieth or grows by it; otherwise there are six bytes for one.
func TestLikelySize(t *testing.T) {
	for said, want := range map[uint32]int{99: 600, 100: 100, 101: 101, 2000: 2000, 2001: 600, 1 << 31: 600} {
		b := binary.LittleEndian.AppendUint32(make([]byte, 96), said)
		if got, isSaid := likelySize(b); got != want || isSaid != (want != 600) {
			t.Errorf("%d is appended to 96 bytes: %d, want %d", said, got, want)
		}
	}
	for n, want := range map[int]int{3: 18, 4: 24} {
		if got, _ := likelySize(make([]byte, n)); got != want {
			t.Errorf("%d bytes: %d, want %d", n, got, want)
		}
	}
	if got, _ := likelySize([]byte{4, 0, 0, 0}); got != 4 {
		t.Errorf("a size and nothing else: %d, want 4", got)
	}
}

// TestPaddedPayload: a reader that stumbles over what follows has read its stream, if the
// stream's size stands within the last 64 bytes.
func TestPaddedPayload(t *testing.T) {
	text := texts()["noise"]
	packed := binary.LittleEndian.AppendUint32(legacyFrame(text), uint32(len(text)))
	for padding := range 80 {
		b := append(packed, bytes.Repeat([]byte{0xaa}, padding)...)
		if got := whole(b, len(text)); got != (padding <= 60) {
			t.Errorf("%d bytes behind the size: %v", padding, got)
		}
	}
	if whole(make([]byte, 8), 0) || whole(packed, len(text)-1) || whole([]byte{1, 0, 0}, 1) {
		t.Error("a stream of no bytes, or of another size, was read to its end")
	}
}

// TestReasons: errors of readers, in words, however they are wrapped.
func TestReasons(t *testing.T) {
	for err, want := range map[error]string{io.EOF: "cut short", io.ErrUnexpectedEOF: "cut short",
		xz.ErrBuf: "cut short or corrupt", io.ErrClosedPipe: io.ErrClosedPipe.Error()} {
		if got := Reason(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
		if got := Reason(fmt.Errorf("block 1: %w", err)); got != want && err != io.ErrClosedPipe {
			t.Errorf("%v, wrapped: %s, want %s", err, got, want)
		}
	}
}

// TestOpen: a packing's reader gives what is packed, of all streams behind each other.
func TestOpen(t *testing.T) {
	var b bytes.Buffer
	for _, text := range []string{"one and ", "another"} {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(text))
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	p := Of(b.Bytes())
	r, err := p.Open(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "one and another" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := p.Bytes(b.Bytes(), 100); err != nil || string(got) != "one and " {
		t.Errorf("the first stream is %q, %v", got, err)
	}
	if _, err := p.Open(strings.NewReader("\x1f")); err == nil {
		t.Error("half of a magic was opened")
	}
	if _, err := p.Bytes([]byte("\x1f\x8b"), 100); err == nil || err.Error() != ": gzip data: cut short" {
		t.Errorf("a magic alone: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestInto: zstd with its size behind it is unpacked into a buffer of that size, and read as any other where the size
// is not said or is above the limit. A wrong size is data that cannot be read.
func TestInto(t *testing.T) {
	text := texts()["words"][:5000]
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll(text, nil)
	said := func(n int) []byte { return binary.LittleEndian.AppendUint32(bytes.Clone(packed), uint32(n)) }
	n := len(text)
	for _, c := range []struct {
		b     []byte
		limit int
		want  string // each call: the buffer's size, the bytes that come out, the error
	}{
		{said(n), n, "5000 5000 <nil>"},
		{said(n), n + 1, "5000 5000 <nil>"},
		{said(n), 1 << 20, "5000 5000 <nil>"},
		{said(n), n - 1, ""}, {packed, n, ""},
	} {
		p, calls := *Of(packed), ""
		p.into = func(b, buffer []byte) ([]byte, error) {
			out, err := zstdInto(b, buffer)
			if calls += fmt.Sprint(cap(buffer), len(out), err); !bytes.Equal(b, c.b) || &out[0] != &buffer[:1][0] {
				t.Errorf("%d behind it: other bytes, or another buffer", n)
			}
			return out, err
		}
		got, err := p.Bytes(c.b, c.limit)
		if calls != c.want {
			t.Errorf("limit %d: %q, want %q", c.limit, calls, c.want)
		}
		if c.limit < n {
			if want := ": zstd data: unpacks to more than 0 MiB"; err == nil || err.Error() != want {
				t.Errorf("limit %d: %v, want %s", c.limit, err, want)
			}
		} else if err != nil || !bytes.Equal(got, text) {
			t.Errorf("limit %d: %d bytes, %v", c.limit, len(got), err)
		}
	}
	for _, size := range []int{n - 1, n + 1} { // of no stream that was read: something else follows this one
		want := ": zstd data: invalid input: magic number mismatch"
		if got, err := Of(packed).Bytes(said(size), 1<<20); err == nil || err.Error() != want {
			t.Errorf("%d said: %d bytes, %v, want %s", size, len(got), err, want)
		}
	}
	if out, err := zstdInto(packed[:len(packed)-1], make([]byte, 0, n)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short: %d bytes, %v", len(out), err)
	}
	if out, err := zstdInto(packed, make([]byte, 0, n-1)); !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		t.Errorf("no room: %d bytes, %v", len(out), err)
	}
}
