// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/sched/coordinator"
)

// changes tells whether the goroutine that calls it goes on on another thread when others take its own for themselves.
func changes() bool {
	for range 100 {
		before, taken, end, ended := unix.Gettid(), make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread() // for good: the thread ends with this goroutine
			taken <- struct{}{}
			<-end
		}()
		<-taken
		after := unix.Gettid()
		close(end)
		<-ended
		if after != before {
			return true
		}
	}
	return false
}

// TestThread: an update stays on its thread, by which the CPU is known, from its begin to its end and no longer.
func TestThread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the next goroutine gets this one's thread
	w := newWorld(t)
	h := w.machine()
	moved, asked := false, 0
	w.files.during = func() {
		asked++
		moved = moved || changes()
	}
	if _, err := h.Apply(t.Context(), []coordinator.Change{{Record: 0, Enable: true}}); err != nil || moved || asked == 0 {
		t.Errorf("%v: asked %d times, moved %v", err, asked, moved)
	}
	if !changes() {
		t.Error("the thread is kept after the update")
	}
}

// TestThisCPU: a thread that may be on one CPU alone is there.
func TestThisCPU(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Skip(err)
	}
	tried := 0
	for cpu := range 1024 {
		if !all.IsSet(cpu) || tried == 4 {
			continue
		}
		tried++
		got := make(chan int)
		go func() {
			runtime.LockOSThread() // for good
			var one unix.CPUSet
			one.Set(cpu)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
			}
			got <- thisCPU()
		}()
		if at := <-got; at != cpu {
			t.Errorf("%d, want %d", at, cpu)
		}
	}
}
