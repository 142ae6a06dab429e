// SPDX-License-Identifier: Apache-2.0

package sched

import "testing"

// TestSlotsByRelease: a page of entries, by the size that struct text_poke_loc had:
// 32 bytes in Linux 5.3 and 5.4 (c0213b0ac03c), 24 in 5.5 (c3d6324f841b), 16 since 5.6
// ("x86/alternative: Shrink text_poke_loc").
func TestSlotsByRelease(t *testing.T) {
	for _, c := range []struct {
		release      string
		slots, bytes int
	}{{"5.3", 128, 32}, {"5.5", 170, 24}, {"5.6", 256, 16}} {
		if got := (Buffer{c.slots}).EntryBytes(); got != c.bytes || 4096/c.bytes != c.slots {
			t.Errorf("%s: %d slots of %d bytes, want %d", c.release, c.slots, got, c.bytes)
		}
	}
}
