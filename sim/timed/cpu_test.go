// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"
	"unsafe"
)

// TestCPUTakesFewLines: what traps and interrupts change of a CPU is in its first three
// cache lines.
func TestCPUTakesFewLines(t *testing.T) {
	const line = 64
	var s cpuState
	if size := unsafe.Sizeof(s); size%line != 0 {
		t.Errorf("a CPU takes %d bytes, which is no multiple of %d", size, line)
	}
	if hot := unsafe.Offsetof(s.tally) + unsafe.Sizeof(s.tally); hot > 3*line {
		t.Errorf("what changes most takes %d bytes, want at most %d", hot, 3*line)
	}
}
