// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/threads"
)

// Config describes a machine.
type Config struct {
	// Code is the instruction set of this machine, where the sites are, and the entry that they may call.
	Code *cpus.Code
	// Initial is what stands at a site at first.
	Initial func(site int) isa.Text
	// Threads is how many threads may call sites, at least one.
	Threads int
	// Seed fixes which sites they pick.
	Seed uint64
	// Pads fills what lies between sites and tracers, so that calls which a broken plan
	// leads astray are counted and come back. It takes as much memory as the text spans.
	Pads bool
	// Unforgiving lets every breakpoint without an entry end its call, as Linux does since
	// 6.3; otherwise only those that are still there do.
	Unforgiving bool
	// Borderless lets rounds be over when membarrier is, which is not enough: a thread may
	// have met a breakpoint then and not have got to its handler.
	Borderless bool
	// Blocks and Text are the files in which threads note what they do and the sites lie,
	// for an Autopsy. Default: memory that goes with the process.
	Blocks, Text *os.File
}

// Machine is text, and the threads that execute it.
type Machine struct {
	text    *Text
	blocks  memory
	threads []*Thread
	release func() error
	closed  bool

	borderless bool // see Config.Borderless

	kept [][]uint64 // what the handler and the loop may be reading, and Go must keep
}

// Open makes the machine, and puts its trap handler in front of Go's. Close must
// follow, when no thread calls a site any more. Errors say what this system or the
// request lacks; ErrOpen and ErrTraced are two of them.
func Open(c Config) (*Machine, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := traced(); err != nil {
		return nil, err
	}
	if !open.CompareAndSwap(false, true) {
		return nil, ErrOpen
	}
	m := &Machine{borderless: c.Borderless}
	if err := m.open(&c); err != nil {
		m.unmap()
		open.Store(false)
		return nil, err
	}
	return m, nil
}

func (m *Machine) open(c *Config) (err error) {
	if err := threads.Register(); err != nil {
		return fmt.Errorf("membarrier's sync-core command, which stands for interrupts: %w", err)
	}
	if m.text, err = newText(c.Code, c.Pads, c.Text); err != nil {
		return err
	}
	for i := range c.Code.Sites {
		text := c.Initial(i)
		copy(m.text.rw.bytes(int(m.text.offsets[i]), c.Code.Len), text.Bytes(c.Code.Len))
		(&Ground{m: m}).Settle(i, text)
	}
	if m.blocks, err = mapBlocks(c.Threads*blockBytes, c.Blocks); err != nil {
		return err
	}
	for i := range c.Threads {
		t := &Thread{m, (*block)(pointer(m.blocks.at + uintptr(i*blockBytes)))}
		t.b.random = c.Seed*0x9e3779b97f4a7c15 + uint64(i+1)*0xd1342543de82ef95 | 1
		t.b.base = uint64(m.text.rx.at)
		m.threads = append(m.threads, t)
	}
	textBase, textSize = m.text.rx.at, uintptr(m.text.rx.size)
	promisesBase, siteLen = m.text.promises.at, uintptr(c.Code.Len)
	blocksBase, blocksSize = m.blocks.at, uintptr(c.Threads*blockBytes)
	unforgiving = 0
	if c.Unforgiving {
		unforgiving = 1
	}
	m.release, err = catch()
	return err
}

// mapBlocks maps the threads' blocks, of a file where there is one.
func mapBlocks(size int, file *os.File) (memory, error) {
	const prot = unix.PROT_READ | unix.PROT_WRITE
	if file == nil {
		return mapMemory("blocks", -1, size, prot, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	}
	if err := file.Truncate(int64(size)); err != nil {
		return memory{}, fmt.Errorf("memory for blocks: %w", err)
	}
	return mapMemory("blocks", int(file.Fd()), size, prot, unix.MAP_SHARED)
}

// maxThreads is more than Linux has (PID_MAX_LIMIT, include/linux/threads.h).
const maxThreads = 1 << 22

func (c *Config) validate() error {
	switch {
	case c.Code == nil || len(c.Code.Sites) == 0:
		return errors.New("no sites")
	case c.Code.Traits.Name != Arch.Traits().Name:
		return fmt.Errorf("sites of %s: this machine executes %s", c.Code.Traits.Name, Arch.Traits().Name)
	case c.Initial == nil:
		return errors.New("nothing says what stands at the sites")
	case c.Threads < 1 || c.Threads > maxThreads:
		return fmt.Errorf("%d threads: want 1 to %d", c.Threads, maxThreads)
	}
	return nil
}

// Close takes the handler away and frees the memory. A second one does nothing.
func (m *Machine) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	err := m.release()
	textSize, blocksSize, published, inFlight = 0, 0, 0, 0
	m.kept = nil
	m.unmap()
	open.Store(false)
	return err
}

func (m *Machine) unmap() {
	if m.text != nil {
		m.text.close()
	}
	m.blocks.unmap()
}

// Threads are those that may call sites.
func (m *Machine) Threads() []*Thread { return m.threads }

// Peek is what stands at a site.
func (m *Machine) Peek(site int) isa.Text {
	return isa.TextOf(m.text.rw.bytes(int(m.text.offsets[site]), m.text.code.Len)...)
}

// Counts is what all threads have done.
func (m *Machine) Counts() (sum Counts) {
	for _, t := range m.threads {
		sum = sum.combine(t.Counts(), func(a, b uint64) uint64 { return a + b })
	}
	return sum
}

// aim lets half of all calls go to some sites, and Forget to none in particular.
func (m *Machine) aim(l *List) {
	m.kept = append(m.kept, l.words)
	storeWord(&inFlight, uintptr(unsafe.Pointer(&l.words[0])))
}

// Forget ends what updates have let threads prefer. Every thread must pass a border
// between two calls before the next update begins: see Recycle.
func (m *Machine) Forget() { storeWord(&inFlight, 0) }

// Recycle frees what earlier updates have published. Every thread must have passed a
// border between two calls since the last one was over.
func (m *Machine) Recycle() {
	clear(m.kept)
	m.kept = m.kept[:0]
}
