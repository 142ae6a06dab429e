// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// legacyFrame packs as lz4 -l does, by another's hand.
func legacyFrame(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	err := w.Apply(lz4.LegacyOption(true))
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unpackedLZ4(b []byte) ([]byte, error) {
	r, err := openLZ4(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestLZ4 unpacks what another program has packed: nothing, what repeats itself at any
// distance, what cannot be packed, more than a block, and all of it with the size behind it.
func TestLZ4(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	words := make([]byte, 0, lz4Block+100_000)
	for len(words) < lz4Block+50_000 {
		at := random.IntN(len(noise) - 300)
		words = append(words, noise[at:at+random.IntN(300)]...)
		words = append(words, bytes.Repeat(noise[at:at+1+random.IntN(5)], random.IntN(100))...)
	}
	for name, text := range map[string][]byte{
		"one": {7}, "zeros": make([]byte, 100_000), "noise": noise, "words": words, "short": []byte("abcabcabcabcabcabcabc"),
	} {
		packed := legacyFrame(t, text)
		got, err := unpackedLZ4(packed)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(text), err)
		}
		got, err = unpackedLZ4(binary.LittleEndian.AppendUint32(packed, uint32(len(text))))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s with its size: %d bytes of %d, %v", name, len(got), len(text), err)
		}
	}
	packed := legacyFrame(t, words[:5000])
	if _, err := unpackedLZ4(packed[:len(packed)-10]); err == nil {
		t.Error("a torn block was read")
	}
	for i := 8; i < len(packed); i += 101 { // whatever the bytes are, no more than a block comes out
		broken := bytes.Clone(packed)
		broken[i] ^= byte(1 + random.IntN(255))
		if got, _ := unpackedLZ4(broken); len(got) > lz4Block {
			t.Fatalf("%d bytes", len(got))
		}
	}
	for _, wrong := range []string{"\x10a\x00\x00", "\x10a\x02\x00", "\xf0", "\x20a", "\x10a\x01", "\x1fa\x01\x00\xff"} {
		if out, err := unpackLZ4(make([]byte, 0, 100), []byte(wrong)); err == nil {
			t.Errorf("%q is %q", wrong, out)
		}
	}
}
