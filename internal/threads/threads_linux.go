// SPDX-License-Identifier: Apache-2.0

// Package threads keeps threads of this process on CPUs of the machine, and has all of them synchronise.
package threads

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed are the CPUs that this process may use.
func Allowed() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("CPUs that this process may use: %w", err)
	}
	for cpu := 0; len(list) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// Pin locks the calling goroutine to its thread, and that to one CPU; a negative number leaves it
// where it is. unpin undoes it.
func Pin(cpu int) (unpin func(), err error) {
	runtime.LockOSThread()
	if cpu < 0 {
		return runtime.UnlockOSThread, nil
	}
	var was, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("sched_setaffinity to CPU %d: %w", cpu, err)
	}
	return func() {
		if unix.SchedSetaffinity(0, &was) == nil {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}, nil
}

// Register announces that this process will call Sync (membarrier(2), include/uapi/linux/membarrier.h, Linux 4.16).
func Register() error { return membarrier(1 << 6) }

// Sync interrupts every CPU that runs a thread of this process; its handler serialises (ipi_sync_core,
// kernel/sched/membarrier.c). When it is over every thread has executed a serializing instruction, or will before it
// is back in its own code.
func Sync() error { return membarrier(1 << 5) }

func membarrier(command uintptr) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
