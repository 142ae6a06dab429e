// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

//go:noescape
func store1(p unsafe.Pointer, v uint8)

//go:noescape
func store2(p unsafe.Pointer, v uint16)

//go:noescape
func store4(p unsafe.Pointer, v uint32)

func serialize()

func storeWord(p *uintptr, v uintptr) { atomic.StoreUintptr(p, v) }

// Unsettle and Settle keep what a site promises.

// Unsettle takes a site's promise back.
func (m *Machine) Unsettle(site int) { m.promiseTo(site, promisesNothing) }

// Settle promises that calls do what a text says from now on.
func (m *Machine) Settle(site int, want isa.Text) {
	code := m.text.code
	if poke.Act(code, code.Sites[site], want).Kind == isa.Call {
		m.promiseTo(site, promisesTracer)
	} else {
		m.promiseTo(site, promisesNobody)
	}
}

func (m *Machine) promiseTo(site int, what uint64) {
	p := m.text.promise(site)
	atomic.StoreUint64(p, atomic.LoadUint64(p)&^promiseBits+promiseBits+1+what)
}

// store writes n bytes of a site as memcpy does: the largest pieces first.
func (m *Machine) store(site, off, n int, t isa.Text) {
	for v := uint64(t); n > 0; {
		p := m.text.write(site, off)
		size := 1
		switch {
		case n >= 4:
			store4(p, uint32(v))
			size = 4
		case n >= 2:
			store2(p, uint16(v))
			size = 2
		default:
			store1(p, uint8(v))
		}
		v >>= 8 * size
		off, n = off+size, n-size
	}
}

// publish makes patches findable.
func (m *Machine) publish(patches []poke.Patch, undo bool) {
	code, n := m.text.code, len(patches)
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case patches[a].Addr < patches[b].Addr:
			return -1
		case patches[a].Addr > patches[b].Addr:
			return 1
		}
		return 0
	})
	t := make([]uint64, 1+2*n)
	t[0] = uint64(n)
	for i, o := range order {
		p := &patches[o]
		text := p.New
		if undo {
			text = p.Old
		}
		t[1+i] = m.text.exec(p.Addr)
		if insn := poke.Act(code, p.Addr, text); insn.Kind == isa.Call {
			t[1+n+i] = m.text.exec(insn.Target)
		}
	}
	storeWord(&published, uintptr(unsafe.Pointer(&t[0])))
	m.tables = [2][]uint64{t, m.tables[0]} // a handler that nobody waited for may still read the one before
	for _, t := range m.threads {
		atomic.AddUint32(&t.b.refs, 1)
	}
}

// unpublish gives the batch's own references back.
func (m *Machine) unpublish() {
	for _, t := range m.threads {
		atomic.AddUint32(&t.b.refs, ^uint32(0))
	}
}

// drained tells whether no handler holds one.
func (m *Machine) drained() bool {
	for _, t := range m.threads {
		if atomic.LoadUint32(&t.b.refs) != 0 {
			return false
		}
	}
	return true
}

// Ground is the machine as a plan sees it, one patcher's. The patcher's own thread must
// call no site while it patches.
type Ground struct {
	m       *Machine
	rules   poke.Rules
	commons poke.Commons
	round   round
	looks   int

	// What was done so far.
	Rounds, Stops, Stores int
	// Answers are those of threads to rounds.
	Answers int
	// Err is why a round could not be sent; the plan must not go on then.
	Err error
}

// Ground is one for a patcher. slots is what the protocol's vector has room for, 0 for
// as many as there are patches.
func (m *Machine) Ground(slots int) *Ground {
	return &Ground{m: m, rules: poke.NewRules(m.text.code, slots)}
}

var _ poke.Ground = (*Ground)(nil)

// Peek implements poke.Ground.
func (g *Ground) Peek(site int) isa.Text { return g.m.Peek(site) }

// Literal implements poke.Ground: sites of this instruction set have none.
func (g *Ground) Literal(int) uint64 { return 0 }

// Store implements poke.Ground.
func (g *Ground) Store(site, off, n int, t isa.Text) {
	g.Stores++
	g.m.store(site, off, n, t)
}

// StoreLiteral implements poke.Ground.
func (g *Ground) StoreLiteral(int, uint64) {}

// Unsettle implements poke.Ground.
func (g *Ground) Unsettle(site int) { g.m.Unsettle(site) }

// Settle implements poke.Ground.
func (g *Ground) Settle(site int, want isa.Text) { g.m.Settle(site, want) }

// Publish implements poke.Ground.
func (g *Ground) Publish(patches []poke.Patch, undo bool) { g.m.publish(patches, undo) }

// Unpublish implements poke.Ground.
func (g *Ground) Unpublish() { g.m.unpublish() }

// Drained implements poke.Ground.
func (g *Ground) Drained() bool {
	relax(g.looks)
	g.looks++
	return g.m.drained()
}

// Clear implements poke.Ground.
func (g *Ground) Clear() { storeWord(&published, 0) }

// Attach and Release implement poke.Ground: tracers are code that is always there.
func (g *Ground) Attach(uint64)  {}
func (g *Ground) Release(uint64) {}

// Lock implements poke.Ground: the only patcher finds every lock free.
func (g *Ground) Lock(mu poke.Mutex) bool {
	took, _ := g.rules.Lock(&g.commons, mu, 0, 0)
	return took
}

// Unlock implements poke.Ground.
func (g *Ground) Unlock(mu poke.Mutex) { g.commons.Unlock(mu, 0) }

// Map implements poke.Ground: all pages are mapped.
func (g *Ground) Map(int) {}

// Raise and Raised implement poke.Ground.
func (g *Ground) Raise()       { g.commons.Told = true }
func (g *Ground) Raised() bool { return g.commons.Told }

// Send implements poke.Ground. Every cause is a round: grace periods end when every
// thread has passed a border between two calls.
func (g *Ground) Send(cpus.Cause, bool) {
	g.Rounds++
	g.looks = 0
	if err := g.m.send(&g.round); err != nil && g.Err == nil {
		g.Err = err
	}
}

// Answered implements poke.Ground.
func (g *Ground) Answered() bool {
	relax(g.looks)
	g.looks++
	if !g.m.over(&g.round) {
		return false
	}
	g.Answers += len(g.m.threads)
	return true
}

// StopMachine implements poke.Ground: threads stop before their next call.
func (g *Ground) StopMachine() bool {
	g.Stops++
	g.looks = 0
	for _, t := range g.m.threads {
		t.Halt()
	}
	return true
}

// Stopped implements poke.Ground.
func (g *Ground) Stopped() bool {
	relax(g.looks)
	g.looks++
	for _, t := range g.m.threads {
		if !t.Between() {
			return false
		}
	}
	return true
}

// ResumeMachine implements poke.Ground. Threads fetch afresh before they go on.
func (g *Ground) ResumeMachine() {
	if err := membarrier(privateExpeditedSyncCore); err != nil && g.Err == nil {
		g.Err = fmt.Errorf("resume: %w", err)
	}
	for _, t := range g.m.threads {
		t.Continue()
	}
}

// SyncSelf implements poke.Ground.
func (g *Ground) SyncSelf() { serialize() }
