// SPDX-License-Identifier: Apache-2.0

//go:build linux

package microbench

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Commands of membarrier(2) (include/uapi/linux/membarrier.h, Linux 4.16). The
// first interrupts every CPU that runs a thread of this process; its handler
// serialises (ipi_sync_core, kernel/sched/membarrier.c).
const (
	privateExpeditedSyncCore         = 1 << 5
	registerPrivateExpeditedSyncCore = 1 << 6
)

// available lists the CPUs that this process may run on.
func available() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// pin keeps this thread on one CPU.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("sched_setaffinity to CPU %d: %w", cpu, err)
	}
	return nil
}

// registerSyncCore announces that this process will call syncCore.
func registerSyncCore() error { return membarrier(registerPrivateExpeditedSyncCore) }

// syncCore is a round to all CPUs that run a thread of this process.
func syncCore() error { return membarrier(privateExpeditedSyncCore) }

func membarrier(command uintptr) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0); errno != 0 {
		return fmt.Errorf("the kernel refuses membarrier(2): %w", errno)
	}
	return nil
}

// getpid is a system call that does nothing, in nanoseconds.
func getpid() float64 {
	start := time.Now()
	for range getpidsAPass {
		_, _, _ = unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	}
	return since(start) / getpidsAPass
}

// describe is this machine in words.
func describe() string {
	what := cmp.Or(Model(), "a machine of unknown model")
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return what
	}
	return what + ", Linux " + unix.ByteSliceToString(u.Release[:])
}
