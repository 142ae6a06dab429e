// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/internal/threads"
)

//go:noescape
func stretch(b *block, calls int64, list *uint64)

func spin(rounds int64)

//go:noescape
func callOnce(b *block, at uintptr) (called uint64)

//go:noescape
func callSite(b *block, at uintptr, calls int64)

// Thread is what calls sites: one goroutine at a time may, which is then locked to its
// thread of the operating system.
type Thread struct {
	m *Machine
	b *block
}

// Stretch calls sites of a list at random, so many times, or fewer when it is stopped.
// Nothing can preempt the goroutine meanwhile: some thousand calls are some ten
// microseconds.
func (t *Thread) Stretch(calls int, list *List) {
	runtime.LockOSThread()
	stretch(t.b, int64(calls), &list.words[0])
	runtime.UnlockOSThread()
}

// Practise is Stretch of a thread that is halted, run by the goroutine that halted it. The calls
// count as the thread's.
func (t *Thread) Practise(calls int, list *List) {
	t.Continue()
	t.Stretch(calls, list)
	t.Halt()
}

// Call calls one site so many times.
func (t *Thread) Call(site, calls int) {
	runtime.LockOSThread()
	callSite(t.b, t.m.text.rx.at+uintptr(t.m.text.offsets[site]), int64(calls))
	runtime.UnlockOSThread()
}

// Halt ends a Stretch under way before its next call, and those to come, until
// Continue.
func (t *Thread) Halt() { atomic.StoreUint64(&t.b.stop, 1) }

// Continue lets Stretch call again.
func (t *Thread) Continue() { atomic.StoreUint64(&t.b.stop, 0) }

// Between tells whether the thread is at none of its sites.
func (t *Thread) Between() bool { return atomic.LoadUint64(&t.b.in) == 0 }

// Counts is what the thread has done.
func (t *Thread) Counts() Counts { return t.b.counts() }

// Kind is what a Finding is of.
type Kind uint8

// The kinds.
const (
	Fault  Kind = iota // executed what the CPU refuses
	Landed             // called where nothing should ever go
	Missed             // met a breakpoint without an entry
	Broken             // did not do what had been promised
)

// Found is the first finding of a kind, with addresses of the records; false for none.
func (t *Thread) Found(k Kind) (f Finding, any bool) {
	p := [...]*Finding{&t.b.fault, &t.b.landed, &t.b.missed, &t.b.broken}[k]
	if atomic.LoadUint64(&p.Site) == 0 {
		return f, false
	}
	f = *p
	f.Site = uint64(t.m.text.record(f.Site))
	if f.PC != 0 {
		f.PC = uint64(t.m.text.record(f.PC))
	}
	return f, true
}

// ForgetFound forgets what was found. The thread must stand between two calls.
func (t *Thread) ForgetFound() {
	t.b.fault, t.b.landed, t.b.missed, t.b.broken = Finding{}, Finding{}, Finding{}, Finding{}
}

// Spin is in user code for a moment, and calls no site.
func Spin(rounds int) { spin(int64(rounds)) }

// List is sites to be called.
type List struct{ words []uint64 }

// List makes a list of one site or more.
func (m *Machine) List(sites []int32) *List { return &List{m.text.list(sites)} }

// block is a thread's state for the handler and the call loop. Register R13 holds its
// address while the thread is in foreign code. The handler runs outside of Go's
// knowledge: nothing here is a pointer that Go would follow.
type block struct {
	in          uint64 // 1 while the thread is in foreign code
	begun       uint64 // calls begun
	traced      uint64 // calls that reached a tracer; counted by its code, which wants a short offset
	untraced    uint64 // calls that came back without
	wrong       uint64 // calls that landed where nothing should ever go
	traps       uint64
	hits        uint64 // traps that found their entry
	misses      uint64 // traps that found none, and the breakpoint had gone
	unhandled   uint64 // calls that ended in a trap that found none, and was not forgiven
	comparisons uint64 // of all look-ups
	refs        uint32 // references that handlers hold, and the batch's own; 0: no handler may enter
	_           uint32
	sp          uint64 // stack pointer of the call loop
	random      uint64 // state of its generator
	faults      uint64 // calls that ended in a fault
	lost        uint64 // calls that reached no tracer though one had been promised
	stale       uint64 // calls that reached a tracer though it had been promised that none does
	stop        uint64 // not 0: the loop ends before its next call
	at          uint64 // the site that is being called, or was last
	base        uint64 // where threads see the text's first byte

	fault, landed, missed, broken Finding // the first of each kind; broken: lost or stale
}

// blockBytes is the room of a block: no two in one pair of cache lines.
const blockBytes = 512

var _ [blockBytes - unsafe.Sizeof(block{})]byte // it fits

// Finding is what a thread met that no sound plan lets it meet.
type Finding struct {
	Signal uint64 // of a fault
	PC     uint64 // where the fault was
	Site   uint64 // the site that was called
	Bytes  uint64 // eight bytes there, when it was found
}

// Counts are what a thread has done. Begun = Traced + Untraced + Wrong + Unhandled +
// Faults and Traps = Hits + Misses + Unhandled whenever the thread stands between two
// calls and no fault has cut a trap short.
type Counts struct {
	Begun, Traced, Untraced, Wrong, Unhandled, Faults uint64
	Traps, Hits, Misses                               uint64
	Comparisons                                       uint64 // of all look-ups
	Lost, Stale                                       uint64 // of Untraced and Traced: calls that broke a promise
}

// Sub is by field.
func (c Counts) Sub(o Counts) Counts { return c.combine(o, func(a, b uint64) uint64 { return a - b }) }

func (c Counts) combine(o Counts, f func(a, b uint64) uint64) Counts {
	return Counts{
		f(c.Begun, o.Begun), f(c.Traced, o.Traced), f(c.Untraced, o.Untraced), f(c.Wrong, o.Wrong),
		f(c.Unhandled, o.Unhandled), f(c.Faults, o.Faults),
		f(c.Traps, o.Traps), f(c.Hits, o.Hits), f(c.Misses, o.Misses),
		f(c.Comparisons, o.Comparisons), f(c.Lost, o.Lost), f(c.Stale, o.Stale),
	}
}

// counts reads them while the thread runs: each is exact, together they are when it
// stands.
func (b *block) counts() Counts {
	l := func(p *uint64) uint64 { return atomic.LoadUint64(p) }
	return Counts{
		l(&b.begun), l(&b.traced), l(&b.untraced), l(&b.wrong), l(&b.unhandled), l(&b.faults),
		l(&b.traps), l(&b.hits), l(&b.misses),
		l(&b.comparisons), l(&b.lost), l(&b.stale),
	}
}

// round is one request to all threads.
type round struct {
	counts   bool     // it is a round, and no grace period
	begun    []uint64 // calls of each thread when it was sent
	answered []bool   // by thread
}

// send makes every thread fetch afresh, and notes where each is.
func (m *Machine) send(r *round) error {
	if err := threads.Sync(); err != nil {
		return fmt.Errorf("round: %w", err)
	}
	r.begun, r.answered = r.begun[:0], r.answered[:0]
	for _, t := range m.threads {
		r.begun = append(r.begun, atomic.LoadUint64(&t.b.begun))
		r.answered = append(r.answered, false)
	}
	return nil
}

// passed tells whether a thread has passed a border between two calls since, or is at
// none of its sites. The signal of a breakpoint is delivered with interrupts on:
// membarrier may end between the trap and its handler.
func (m *Machine) passed(r *round, thread int) bool {
	b := m.threads[thread].b
	return m.borderless || atomic.LoadUint64(&b.begun) != r.begun[thread] || atomic.LoadUint64(&b.in) == 0
}

// patience is how often a patcher looks before it lets other threads have its CPU.
const patience = 100

func relax(looks *int) {
	if *looks++; *looks%patience == 0 {
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// Standing calls f while every thread stands between two calls. Threads that are halted
// stay so; no update may be running.
func (m *Machine) Standing(f func()) error {
	var halted []*Thread
	for _, t := range m.threads {
		if atomic.SwapUint64(&t.b.stop, 1) == 0 {
			halted = append(halted, t)
		}
	}
	defer func() {
		for _, t := range halted {
			t.Continue()
		}
	}()
	if err := threads.Sync(); err != nil { // as in StopMachine
		return fmt.Errorf("let threads stand still: %w", err)
	}
	looks := 0
	for _, t := range m.threads {
		for !t.Between() {
			relax(&looks)
		}
	}
	f()
	return nil
}
