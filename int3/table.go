package int3

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Table publishes an Index and what to act as at each of its slots: bp_desc of
// arch/x86/kernel/alternative.c, text_poke_array since Linux 6.16. It implements
// cpus.Handler. One patcher at a time may publish.
type Table struct {
	current atomic.Pointer[published]
	refs    []counter // one, or one for each CPU
	kind    Refs
}

type published struct {
	index Index
	acts  []isa.Insn // by slot: the instruction to act as
}

// NewTable makes a table for n CPUs, with nothing published.
func NewTable(r Refs, n int) *Table {
	if r != PerCPU {
		n = 1
	}
	return &Table{refs: make([]counter, n), kind: r}
}

func (t *Table) ref(cpu int) *counter {
	if t.kind == PerCPU {
		return &t.refs[cpu]
	}
	return &t.refs[0]
}

// Publish makes an index findable and takes the patcher's own references. All
// of it happens before the first reference can be had. What was published before
// must be drained.
func (t *Table) Publish(x Index, acts []isa.Insn) {
	t.current.Store(&published{x, acts})
	for i := range t.refs {
		t.refs[i].n.Store(1)
	}
}

// Unpublish gives the patcher's references back: nobody can enter any more.
func (t *Table) Unpublish() {
	for i := range t.refs {
		t.refs[i].n.Add(-1)
	}
}

// Drained tells whether the last handler has left.
func (t *Table) Drained() bool {
	for i := range t.refs {
		if t.refs[i].n.Load() != 0 {
			return false
		}
	}
	return true
}

// References is how many there are of a count that all CPUs share: the patcher's,
// and one of each handler that looks.
func (t *Table) References() int32 { return t.refs[0].n.Load() }

// Lost tells whether references were given back that nobody had: then handlers can
// never be waited for.
func (t *Table) Lost() bool {
	for i := range t.refs {
		if t.refs[i].n.Load() < 0 {
			return true
		}
	}
	return false
}

// Clear forgets the index; for when Drained.
func (t *Table) Clear() { t.current.Store(nil) }

// Enter implements cpus.Handler.
func (t *Table) Enter(cpu int) bool {
	if t.kind == NoRef {
		return t.refs[0].n.Load() != 0
	}
	return t.ref(cpu).get()
}

// Leave implements cpus.Handler.
func (t *Table) Leave(cpu int) {
	if t.kind != NoRef {
		t.ref(cpu).n.Add(-1)
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
