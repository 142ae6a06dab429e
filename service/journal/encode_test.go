// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.SliceOfNDistinct(rapid.IntRange(0, 300), 0, 200, rapid.ID).Draw(t, "numbers")
		slices.Sort(ns)
		got, err := decode(encode(ns), 301)
		if err != nil || !slices.Equal(got, ns) {
			t.Fatalf("%v, %v, want %v", got, err, ns)
		}
	})
}

// TestDecodeRefuses what names records that are not there, and what is cut.
func TestDecodeRefuses(t *testing.T) {
	whole := encode([]int{1, 2, 9})
	for limit, want := range map[int]bool{10: true, 9: false, 2: false, 0: false} {
		if _, err := decode(whole, limit); (err == nil) != want {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	for n := range whole {
		if _, err := decode(whole[:n], 10); err == nil {
			t.Errorf("%d bytes of %d are decoded", n, len(whole))
		}
	}
}

// FuzzDecode: whatever runs say, with their sum, is refused or ascends below the
// limit.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 5, 60})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1})
	f.Fuzz(func(t *testing.T, runs []byte) {
		const limit = 1000
		ns, err := decode(binary.BigEndian.AppendUint32(runs, crc32.ChecksumIEEE(runs)), limit)
		if err != nil {
			return
		}
		for i, n := range ns {
			if n < 0 || n >= limit || i > 0 && n <= ns[i-1] {
				t.Fatalf("%v", ns)
			}
		}
	})
}
