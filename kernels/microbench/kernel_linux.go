// SPDX-License-Identifier: Apache-2.0

//go:build linux

package microbench

import (
	"cmp"
	"time"

	"golang.org/x/sys/unix"
)

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
