// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"fmt"
	"math"
	"testing"
)

func TestParseBuffer(t *testing.T) {
	for s, want := range map[string]Buffer{
		"dynamic": Dynamic, "1": {1}, "128": {128}, "170": {170}, "256": {256}, "1073741824": {1 << 30},
	} {
		got, err := ParseBuffer(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

func TestParseBufferRefuses(t *testing.T) {
	for _, s := range []string{
		"0", "-1", "-256", "1073741825", fmt.Sprint(math.MaxInt), "99999999999999999999",
		"", " ", "256 ", "0x100", "1e3", "2.5", "Dynamic", "dynamic2", "all",
	} {
		got, err := ParseBuffer(s)
		want := fmt.Sprintf("buffer %q: want a number of slots from 1 to 1073741824, or dynamic", s)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", s, got, err, want)
		}
	}
}

// TestBufferSize: the vectors of all kernels were made to fill one page.
func TestBufferSize(t *testing.T) {
	for _, c := range []struct{ slots, patches, bytes, pages int }{
		{256, 45_000, 4096, 1},
		{256, 1, 4096, 1},
		{170, 45_000, 4080, 1}, // 24 bytes a slot
		{128, 45_000, 4096, 1}, // 32 bytes a slot
		{257, 45_000, 4112, 2},
		{1, 45_000, 16, 1},
		{0, 45_000, 720_000, 176},
		{0, 256, 4096, 1},
		{0, 257, 4112, 2},
		{0, 170, 2720, 1}, // that there are 170 of them says nothing about their size
		{0, 0, 0, 0},
	} {
		bytes, pages := Buffer{c.slots}.Size(c.patches)
		if bytes != c.bytes || pages != c.pages {
			t.Errorf("%v for %d patches: %d bytes, %d pages, want %d, %d", Buffer{c.slots}, c.patches, bytes, pages, c.bytes,
				c.pages)
		}
	}
}
