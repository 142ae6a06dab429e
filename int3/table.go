// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Table publishes an Index and what to act as at each of its slots: bp_desc of
// arch/x86/kernel/alternative.c, text_poke_array since Linux 6.16. It implements
// cpus.Handler. One patcher at a time may publish.
type Table struct {
	current atomic.Pointer[published]
	refs    counters // one, or one for each CPU
	kind    Refs
}

type published struct {
	index Index
	acts  []isa.Insn // by slot: the instruction to act as
}

// NewTable makes a table for n CPUs, with nothing published. A counter has a cache line
// of its own.
func NewTable(r Refs, n int) *Table { return newTable(r, n, lineCounts) }

// NewSerialTable makes one for CPUs that never run at the same time: their counters may
// share cache lines, so that thousands of them take few.
func NewSerialTable(r Refs, n int) *Table { return newTable(r, n, 1) }

func newTable(r Refs, n, stride int) *Table {
	if r != PerCPU {
		n = 1
	}
	return &Table{refs: counters{make([]atomic.Int32, n*stride), stride}, kind: r}
}

func (t *Table) ref(cpu int) *atomic.Int32 {
	if t.kind != PerCPU {
		cpu = 0
	}
	return t.refs.at(cpu)
}

// Publish makes an index findable and takes the patcher's own references before any handler can
// take one. The previous index must have been drained.
func (t *Table) Publish(x Index, acts []isa.Insn) {
	t.current.Store(&published{x, acts})
	for i := range t.refs.len() {
		t.refs.at(i).Store(1)
	}
}

// Unpublish gives the patcher's references back. From then on handlers cannot enter.
func (t *Table) Unpublish() {
	for i := range t.refs.len() {
		t.refs.at(i).Add(-1)
	}
}

// Drained tells whether the last handler has left.
func (t *Table) Drained() bool { return !t.any(func(n int32) bool { return n != 0 }) }

// any tells whether it is so of one of the counts.
func (t *Table) any(so func(n int32) bool) bool {
	for i := range t.refs.len() {
		if so(t.refs.at(i).Load()) {
			return true
		}
	}
	return false
}

// References is how many there are of a count that all CPUs share: the patcher's,
// and one of each handler that looks.
func (t *Table) References() int32 { return t.refs.at(0).Load() }

// Lost tells whether more references were given back than taken: then a patcher cannot wait for
// handlers any more.
func (t *Table) Lost() bool { return t.any(func(n int32) bool { return n < 0 }) }

// Clear forgets the index; for when Drained.
func (t *Table) Clear() { t.current.Store(nil) }

// Enter implements cpus.Handler.
func (t *Table) Enter(cpu int) bool {
	if t.kind == NoRef {
		return t.refs.at(0).Load() != 0
	}
	return get(t.ref(cpu))
}

// Leave implements cpus.Handler.
func (t *Table) Leave(cpu int) {
	if t.kind != NoRef {
		t.ref(cpu).Add(-1)
	}
}

// Find implements cpus.Handler.
func (t *Table) Find(at records.Addr, p *cpus.Probe) (isa.Insn, cpus.Found) {
	cur := t.current.Load()
	if cur == nil {
		return isa.Insn{}, cpus.TornDown
	}
	slot, ok := cur.index.Find(at, p)
	if !ok {
		return isa.Insn{}, cpus.NoEntry
	}
	return cur.acts[slot], cpus.Hit
}

// Refs counts the handlers that look at what is published.
type Refs uint8

// The variants.
const (
	// PerCPU: a counter for each CPU (Linux 6.16, 4334336e769b).
	PerCPU Refs = iota
	// SharedRef: one counter that every handler changes (5.6 to 6.15, 1f676247f36a).
	SharedRef
	// NoRef: handlers look whether there is a batch and count nothing
	// (5.3 to 5.5; nr_entries of bp_patching).
	NoRef
)

var refsNames = []string{"percpu", "shared", "none"}

// RefsNames lists the variants.
func RefsNames() []string { return refsNames }

func (r Refs) String() string { return refsNames[r] }

// ParseRefs reads a variant's name.
func ParseRefs(s string) (Refs, error) { return spelling.Number[Refs]("refs", s, refsNames) }

// counters are reference counts, stride apart.
type counters struct {
	n      []atomic.Int32
	stride int
}

// lineCounts is how many counts there is room for in a cache line.
const lineCounts = 16

func (c *counters) at(i int) *atomic.Int32 { return &c.n[i*c.stride] }
func (c *counters) len() int               { return len(c.n) / c.stride }

// get takes a reference unless there is none at all (atomic_inc_not_zero).
func get(count *atomic.Int32) bool {
	for {
		n := count.Load()
		if n == 0 {
			return false
		}
		if count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
