// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"runtime"
	"testing"
)

// TestPin: a thread that is pinned may use one CPU.
func TestPin(t *testing.T) {
	runtime.LockOSThread() // it ends with the test
	if err := pin(own, 0); err != nil {
		t.Skip("skipped:", err)
	}
	if on := allowed("/proc/thread-self/status"); on != "0" {
		t.Errorf("allowed are %q, want 0", on)
	}
}
