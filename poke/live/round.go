// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
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
	counts   bool     // it is a round, and no grace period
	begun    []uint64 // calls of each thread when it was sent
	answered []bool   // by thread
}

// send makes every thread fetch afresh, and notes where each is.
func (m *Machine) send(r *round) error {
	if err := membarrier(privateExpeditedSyncCore); err != nil {
		return fmt.Errorf("round: %w", err)
	}
	r.begun, r.answered = r.begun[:0], r.answered[:0]
	for _, t := range m.threads {
		r.begun = append(r.begun, atomic.LoadUint64(&t.b.begun))
		r.answered = append(r.answered, false)
	}
	return nil
}

// passed tells whether a thread has passed a border between two calls since, or is at
// none of its sites. The signal of a breakpoint is delivered with interrupts on:
// membarrier may end between the trap and its handler.
func (m *Machine) passed(r *round, thread int) bool {
	b := m.threads[thread].b
	return m.borderless || atomic.LoadUint64(&b.begun) != r.begun[thread] || atomic.LoadUint64(&b.in) == 0
}

// patience is how often a patcher looks before it lets other threads have its CPU.
const patience = 100

func relax(looks *int) {
	if *looks++; *looks%patience == 0 {
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// Standing calls f while every thread stands between two calls. Threads that are halted
// stay so; no update may be running.
func (m *Machine) Standing(f func()) error {
	var halted []*Thread
	for _, t := range m.threads {
		if atomic.SwapUint64(&t.b.stop, 1) == 0 {
			halted = append(halted, t)
		}
	}
	defer func() {
		for _, t := range halted {
			t.Continue()
		}
	}()
	if err := membarrier(privateExpeditedSyncCore); err != nil { // as in StopMachine
		return fmt.Errorf("let threads stand still: %w", err)
	}
	looks := 0
	for _, t := range m.threads {
		for !t.Between() {
			relax(&looks)
		}
	}
	f()
	return nil
}
