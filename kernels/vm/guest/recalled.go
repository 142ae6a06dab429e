// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// mapFile maps so much of a file, at an address or, for 0, anywhere.
func mapFile(file string, at, size, access uintptr) (uintptr, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	flags := uintptr(syscall.MAP_PRIVATE)
	if at != 0 {
		flags |= syscall.MAP_FIXED
	}
	at, _, e := syscall.Syscall6(syscall.SYS_MMAP, at, size, access, flags, f.Fd(), 0)
	if e != 0 {
		return 0, fmt.Errorf("map %s: %w", file, e)
	}
	return at, nil
}

// recalled is a probe that goes and comes again while CPU 1 executes its site, in a thread of the same process. A site
// almost 2 GiB below has brought a trampoline meanwhile, which is in reach of both and comes first
// (get_uprobe_trampoline, arch/x86/kernel/uprobes.c, Linux 7.2): the call is another one then, in each byte but the lowest.
func recalled(string) (*action, error) {
	const (
		file, site = "/recalled", "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\xc3" // a nop of ten bytes, and ret
		enable     = tracing + "events/vm/recalled/enable"
		page, high = 1 << 12, 1 << 45
		gap        = 0x123_000 // around it: no trampoline is nearer
		low        = high - 1<<31 + 0x50_000
	)
	err := os.WriteFile(file, []byte(site), 0o700)
	if err := errors.Join(err, add(tracing+"uprobe_events", "p:vm/recalled "+file+":0\n")); err != nil {
		return nil, err
	}
	call := func(at uintptr) {
		code := &at
		(*(*func())(unsafe.Pointer(&code)))()
	}
	runtime.GOMAXPROCS(2)
	turn := make(chan error)
	go func() {
		runtime.LockOSThread()
		for err := pin(own, 1); ; {
			turn <- err
			call(high)
			turn <- err
		}
	}()
	return &action{on: func() error {
		_, around := mapFile("/proc/self/exe", high-gap, 2*gap, syscall.PROT_NONE)
		_, above := mapFile(file, high, page, syscall.PROT_READ|syscall.PROT_EXEC)
		_, below := mapFile(file, low, page, syscall.PROT_READ|syscall.PROT_EXEC)
		if err := errors.Join(around, above, below, write(enable, "1")); err != nil {
			return err
		}
		call(high)
		call(low)
		err := errors.Join(<-turn, write(enable, "0"), write(enable, "1"))
		call(high)
		return errors.Join(err, <-turn)
	}, off: func() error {
		_, _, e := syscall.Syscall(syscall.SYS_MUNMAP, low, high+2*gap-low, 0)
		if e != 0 {
			return e
		}
		return write(enable, "0")
	}}, nil
}
