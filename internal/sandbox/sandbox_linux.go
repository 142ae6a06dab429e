// SPDX-License-Identifier: Apache-2.0

// Package sandbox forbids this process the system calls that sandboxes forbid, so that tests see its errors then, and
// lets tests mount what no other process sees.
package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter of system calls (seccomp(2)) sees struct seccomp_data (include/uapi/linux/seccomp.h):
// the number, then, from byte 16 on, the arguments, eight bytes each.
const (
	load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	some   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	answer = unix.BPF_RET | unix.BPF_K
	third  = 16 + 2*8
)

// forbidden are what can be: a system call, where bits is not 0 only with some of these bits
// in its third argument.
var forbidden = map[string]struct{ number, bits uint32 }{
	"membarrier":        {unix.SYS_MEMBARRIER, 0},
	"memfd_create":      {unix.SYS_MEMFD_CREATE, 0},
	"executable memory": {unix.SYS_MMAP, unix.PROT_EXEC},
}

// Forbid lets it fail from now on, with EPERM, in all threads of this process and in its
// children.
func Forbid(what string) error {
	f, ok := forbidden[what]
	if !ok {
		return fmt.Errorf("%q cannot be forbidden", what)
	}
	filter := []unix.SockFilter{{Code: load}, {Code: equal, K: f.number, Jf: 1}}
	if f.bits != 0 {
		filter[1].Jf = 3
		filter = append(filter, unix.SockFilter{Code: load, K: third}, unix.SockFilter{Code: some, K: f.bits, Jf: 1})
	}
	filter = append(filter, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid %s: %w", what, err)
	}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program))); e != 0 {
		return fmt.Errorf("forbid %s: %w", what, e)
	}
	return nil
}

// Works tells whether this system has filters of system calls.
func Works() bool {
	_, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil
}

// Mounts calls do in a thread that has mounts of its own, and returns why it could not.
func Mounts(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and ends with it
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		defer func() { done <- err }()
		if err == nil {
			err = do()
		}
	}()
	return <-done
}
