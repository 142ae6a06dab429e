// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// Text is call sites in executable memory, each followed by a return. Addresses are
// those of the records, moved by one difference, so that distances, cache lines, pages
// and the bytes of calls are the kernel's. It is mapped twice, as a kernel's text and
// poking_mm are: executable for threads, writable for the patcher.
type Text struct {
	code     *cpus.Code
	low      records.Addr // of the record space, at offset 0
	rx, rw   memory
	offsets  []uint32
	promises memory // a word a site, for the call loop
}

const (
	pageSize = 4096
	// reach is how far rel32 reaches, in bytes.
	reach = 1 << 31
	// padBytes is the distance of landing pads.
	padBytes = 32
)

// Each tracer's code: inc the thread's counter; mov bl, 1; ret.
// Where nothing should ever go: inc another one; mov bl, 2; ret.
func landing(counter uintptr, mark byte) []byte {
	return []byte{0x49, 0xff, 0x45, byte(counter), 0xb3, mark, 0xc3}
}

var (
	tracerCode = landing(unsafe.Offsetof(block{}.traced), calledTracer)
	padCode    = landing(unsafe.Offsetof(block{}.wrong), calledWrong)
)

// Values of BL when a call comes back.
const (
	calledNobody = iota
	calledTracer
	calledWrong
	calledFault
	calledTwice // it was not called: its block is another one's at the moment
	calledNever // it was not called: threads are to stand still
)

// newText lays the sites and the entry out, which is a tracer. pads fills what lies between them, on the pages
// that they lie on, with landing pads, for plans that may call anywhere.
func newText(code *cpus.Code, pads bool, file *os.File) (*Text, error) {
	low, high := bounds(code)
	span := uint64(high-low) + 3*pageSize
	if span >= reach {
		return nil, fmt.Errorf("sites and their entry span %d bytes: a call reaches %d", span, reach)
	}
	size := int(span &^ (pageSize - 1))
	t := &Text{code: code, low: low, offsets: make([]uint32, len(code.Sites))}
	err := t.mapBoth(size, file)
	if err == nil {
		t.promises, err = mapMemory("promises", -1, 8*len(code.Sites), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	if pads {
		t.fill(append(slices.Clone(code.Sites), code.Entry))
	}
	copy(t.rw.bytes(t.offset(code.Entry), len(tracerCode)), tracerCode)
	for i, a := range code.Sites {
		t.offsets[i] = uint32(t.offset(a))
		t.rw.bytes(t.offset(a)+code.Len, 1)[0] = 0xc3
	}
	return t, nil
}

// bounds are the first page of a text and its last address.
func bounds(code *cpus.Code) (low, high records.Addr) {
	low, high = min(code.Entry, slices.Min(code.Sites)), max(code.Entry, slices.Max(code.Sites))
	return low &^ (pageSize - 1), high
}

// fill fills the pages of some addresses with landing pads.
func (t *Text) fill(addrs []records.Addr) {
	var pads [pageSize]byte
	for off := range pads {
		pads[off] = 0x90
	}
	for off := padBytes; off <= pageSize; off += padBytes {
		copy(pads[off-len(padCode):], padCode)
	}
	done := map[int]bool{}
	for _, a := range addrs {
		if page := t.offset(a) &^ (pageSize - 1); !done[page] {
			copy(t.rw.bytes(page, pageSize), pads[:])
			done[page] = true
		}
	}
}

// mapBoth maps one file twice.
func (t *Text) mapBoth(size int, file *os.File) (err error) {
	if file == nil {
		if file, err = File("text"); err != nil {
			return err
		}
		defer file.Close()
	}
	if err := file.Truncate(int64(size)); err != nil {
		return fmt.Errorf("memory for %d bytes of text: %w", size, err)
	}
	fd := int(file.Fd())
	const flags = unix.MAP_SHARED | unix.MAP_NORESERVE
	if t.rw, err = mapMemory("text, to be written", fd, size, unix.PROT_READ|unix.PROT_WRITE, flags); err != nil {
		return err
	}
	t.rx, err = mapMemory("text, to be executed", fd, size, unix.PROT_READ|unix.PROT_EXEC, flags)
	return err
}

func (t *Text) close() {
	t.rx.unmap()
	t.rw.unmap()
	t.promises.unmap()
}

func (t *Text) offset(a records.Addr) int { return int(a - t.low) }

// exec is where threads see an address of the records.
func (t *Text) exec(a records.Addr) uint64 { return uint64(t.rx.at) + uint64(a-t.low) }

// record is the address of the records that threads see at pc.
func (t *Text) record(pc uint64) records.Addr { return t.low + records.Addr(pc-uint64(t.rx.at)) }

// promise is a site's word: how often it was changed, and in the lowest two bits what
// calls of it do.
func (t *Text) promise(site int) *uint64 { return (*uint64)(pointer(t.promises.at + 8*uintptr(site))) }

// The promises of a site's word.
const (
	promisesNothing = iota
	promisesNobody  // calls come back at once
	promisesTracer  // calls reach a tracer
	promiseBits     = 3
)

// list is what the call loop picks from: how many, then for each its offset and its
// number.
func (t *Text) list(sites []int32) []uint64 {
	list := make([]uint64, 1, 1+len(sites))
	list[0] = uint64(len(sites))
	for _, s := range sites {
		list = append(list, uint64(t.offsets[s])|uint64(s)<<32)
	}
	return list
}

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
