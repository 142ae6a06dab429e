// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Commands of membarrier(2) (include/uapi/linux/membarrier.h, Linux 4.16): every thread
// of this process that is running executes a core-serializing instruction before it
// goes on in user mode; the others do when they are scheduled.
const (
	privateExpeditedSyncCore         = 1 << 5
	registerPrivateExpeditedSyncCore = 1 << 6
)

func membarrier(command uintptr) error {
	if _, _, e := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0); e != 0 {
		return e
	}
	return nil
}

// register asks for membarrier, which this process then may use.
func register() error {
	if err := membarrier(registerPrivateExpeditedSyncCore); err != nil {
		return fmt.Errorf("membarrier's sync-core command, which stands for interrupts: %w", err)
	}
	return nil
}

// round is one request to all threads.
type round struct {
	begun []uint64 // calls of each thread when it was sent
	asked bool
}

// send makes every thread fetch afresh, and notes where each is.
func (m *Machine) send(r *round) error {
	if err := membarrier(privateExpeditedSyncCore); err != nil {
		return fmt.Errorf("round: %w", err)
	}
	r.begun = r.begun[:0]
	for _, t := range m.threads {
		r.begun = append(r.begun, atomic.LoadUint64(&t.b.begun))
	}
	r.asked = true
	return nil
}

// over tells whether every thread has passed a border between two calls since, or is
// at none of its sites. The signal of a breakpoint is delivered with interrupts on:
// membarrier may end between the trap and its handler.
func (m *Machine) over(r *round) bool {
	for i, t := range m.threads {
		if atomic.LoadUint64(&t.b.begun) == r.begun[i] && atomic.LoadUint64(&t.b.in) != 0 {
			return false
		}
	}
	r.asked = false
	return true
}

// patience is how often a patcher looks before it lets other goroutines run: a round is
// over within microseconds where threads run.
const patience = 100

// relax lets others run every so often.
func relax(looks int) {
	if looks%patience == patience-1 {
		runtime.Gosched()
	}
}
