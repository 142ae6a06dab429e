// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"sync/atomic"
	"unsafe"
)

// block is what the handler and the call loop know of a thread. Register R13 holds its
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
	refs        uint32 // references that handlers hold, and the batch's own; 0: nobody may enter
	_           uint32
	sp          uint64 // stack pointer of the call loop
	random      uint64 // state of its generator
	faults      uint64 // calls that ended in a fault
	lost        uint64 // calls that reached nobody though a tracer had been promised
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

// Add is by field.
func (c Counts) Add(o Counts) Counts { return c.combine(o, func(a, b uint64) uint64 { return a + b }) }

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
