// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is a mapping that Go knows nothing of.
type memory struct {
	at   uintptr
	size int
}

// mapMemory maps size bytes of fd, or of nothing for -1.
func mapMemory(what string, fd, size, prot, flags int) (memory, error) {
	at, _, e := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(size), uintptr(prot), uintptr(flags), uintptr(fd), 0)
	if e != 0 {
		return memory{}, fmt.Errorf("map %d bytes of %s: %w", size, what, e)
	}
	return memory{at, size}, nil
}

// unmap gives the mapping back, once.
func (m *memory) unmap() {
	if m.size > 0 {
		unix.Syscall(unix.SYS_MUNMAP, m.at, uintptr(m.size), 0)
	}
	*m = memory{}
}

// pointer is an address in the mapping. The detour by a pointer to the address is for
// vet, which takes every other conversion for one of memory that Go moves.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// bytes are some of the mapping's.
func (m memory) bytes(off, n int) []byte { return unsafe.Slice((*byte)(pointer(m.at+uintptr(off))), n) }
