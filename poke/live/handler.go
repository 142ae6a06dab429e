// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

//lint:file-ignore U1000 the assembly reads what Go only writes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// Shared with the handler and the call loop. They are plain words because code outside of Go's
// knowledge reads them; those that change while threads run are exchanged atomically.
var (
	textBase, textSize     uintptr
	blocksBase, blocksSize uintptr
	promisesBase           uintptr
	siteLen                uintptr
	published              uintptr // a table of breakpoints; 0 for none
	inFlight               uintptr // a list of sites; 0 for none
	unforgiving            uintptr // not 0: a breakpoint without an entry ends its call
	chained                [maxSignal + 1]uintptr
)

const maxSignal = 64

func handlerPC() (handler, restorer uintptr)

// open tells whether a machine is.
var open atomic.Bool

// ErrOpen refuses a second machine.
var ErrOpen = errors.New("a machine is open in this process: there can be one at a time")

// ErrTraced refuses what needs breakpoints in a process whose debugger would get them.
var ErrTraced = errors.New("a debugger or tracer is attached, and would get the breakpoints")

// traced tells whether a process traces this one (proc(5), status). Where /proc is missing it is taken for untraced.
func traced() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(status), "\nTracerPid:\t")
	if pid, _, _ := strings.Cut(rest, "\n"); pid != "0" {
		return fmt.Errorf("%w: process %s", ErrTraced, pid)
	}
	return nil
}

// sigaction is the kernel's struct (arch/x86/include/uapi/asm/signal.h).
type sigaction struct{ handler, flags, restorer, mask uintptr }

const (
	saSiginfo  = 0x4
	saRestorer = 0x04000000
	saOnStack  = 0x08000000
)

// caught are the signals of instructions: a breakpoint's, and what else a thread may
// run into in broken text.
var caught = []unix.Signal{unix.SIGTRAP, unix.SIGILL, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE}

// catch puts the handler in front of Go's, and returns what takes it away again.
func catch() (release func() error, err error) {
	handler, restorer := handlerPC()
	var old []sigaction
	release = func() error {
		for i, was := range old {
			if err := setAction(caught[i], &was, nil); err != nil {
				return err
			}
		}
		return nil
	}
	for _, sig := range caught {
		var was sigaction
		if err := setAction(sig, nil, &was); err != nil {
			return nil, errors.Join(err, release())
		}
		chained[sig] = was.handler
		ours := sigaction{handler, saSiginfo | saRestorer | saOnStack, restorer, ^uintptr(0)}
		if err := setAction(sig, &ours, nil); err != nil {
			return nil, errors.Join(err, release())
		}
		old = append(old, was)
	}
	return release, nil
}

func setAction(sig unix.Signal, action, was *sigaction) error {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(action)),
		uintptr(unsafe.Pointer(was)), unsafe.Sizeof(sigaction{}.mask), 0, 0)
	if e != 0 {
		return fmt.Errorf("handler of %v: %w", sig, e)
	}
	return nil
}

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
	Bytes        []byte // eight, of now
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
