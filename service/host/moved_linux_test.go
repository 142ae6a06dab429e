// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMoved: an update that goes on on another CPU names no patcher's CPU.
func TestMoved(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		t.Skipf("%d CPUs, %v: want two", all.Count(), err)
	}
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	w.files.during = func() {
		runtime.LockOSThread() // for good: the thread ends with its goroutine, and stays where it is until then
		elsewhere := all
		elsewhere.Clear(thisCPU())
		if err := unix.SchedSetaffinity(0, &elsewhere); err != nil {
			t.Error(err)
		}
		w.files.during = func() {}
	}
	if r := w.do(s, "one", true, "a").Receipt; r == nil || r.Patcher != nil {
		t.Errorf("%+v, want a receipt without a patcher", r)
	}
}
