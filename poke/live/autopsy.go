// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// File is memory for a Config's Blocks or Text, which outlives the process that uses it.
func File(what string) (*os.File, error) {
	fd, err := unix.MemfdCreate("textpoke "+what, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for %s: %w", what, err)
	}
	return os.NewFile(uintptr(fd), what), nil
}

// Executing is a site that a thread was executing.
type Executing struct {
	Thread, Site int
	Bytes        []byte // eight, as they are now
}

// Autopsy tells of the files of a machine whose process is dead which sites its threads
// were executing.
func Autopsy(blocks, text *os.File, code *cpus.Code) (list []Executing) {
	low, _ := bounds(code)
	b := make([]byte, blockBytes)
	for i := 0; ; i++ {
		if n, _ := blocks.ReadAt(b, int64(i*blockBytes)); n < len(b) {
			return list
		}
		word := func(at uintptr) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
		at, base := word(unsafe.Offsetof(block{}.at)), word(unsafe.Offsetof(block{}.base))
		if word(unsafe.Offsetof(block{}.in)) == 0 || at < base {
			continue
		}
		e := Executing{Thread: i, Site: slices.Index(code.Sites, low+records.Addr(at-base)), Bytes: make([]byte, 8)}
		if n, _ := text.ReadAt(e.Bytes, int64(at-base)); n == len(e.Bytes) && e.Site >= 0 {
			list = append(list, e)
		}
	}
}

// Begun are the calls that each thread of a machine has begun, 0 for one that is at no site
// now.
func Begun(blocks *os.File) (list []uint64) {
	b := make([]byte, blockBytes)
	for i := 0; ; i++ {
		if n, _ := blocks.ReadAt(b, int64(i*blockBytes)); n < len(b) {
			return list
		}
		begun := uint64(0)
		if binary.LittleEndian.Uint64(b[unsafe.Offsetof(block{}.in):]) != 0 {
			begun = binary.LittleEndian.Uint64(b[unsafe.Offsetof(block{}.begun):])
		}
		list = append(list, begun)
	}
}
