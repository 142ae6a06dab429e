// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/threads"
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

func (m *Machine) promiseTo(site int, what uint64) {
	p := m.text.promise(site)
	atomic.StoreUint64(p, atomic.LoadUint64(p)&^promiseBits+promiseBits+1+what)
}

// Ground is the machine as a plan sees it, one patcher's: a poke.Workplace. The thread
// of the patcher must call no site while it patches.
type Ground struct {
	m       *Machine
	rules   poke.Rules
	commons poke.Commons
	filling poke.Filling
	self    int // the thread that patches, -1 where that is none of the machine's
	round   round
	looks   int
	halted  bool
	err     error // why a round could not be sent; the plan must not go on then

	// Totals so far: Rounds and Stops that were sent, Stores that were made.
	Rounds, Stops, Stores int
	// Answers and Halts are, by thread, the rounds that it has answered and the times
	// that it has stood still.
	Answers, Halts []int
	// Times are those of rounds, from the request to the last answer.
	Times []time.Duration
	sent  time.Time
	// Broken are the rules of patchers that were broken.
	Broken []cpus.Violation
	// Aim lets threads that call at random prefer the sites that are being changed.
	Aim bool
}

// Ground is one for a patcher. slots is what the protocol's vector has room for, 0 for
// as many as there are patches. self is the thread that patches, which is halted, or -1.
func (m *Machine) Ground(slots int, f poke.Filling, self int) *Ground {
	n := len(m.threads)
	return &Ground{m: m, rules: poke.NewRules(m.text.code, slots), filling: f, self: self,
		Answers: make([]int, n), Halts: make([]int, n)}
}

var _ poke.Workplace = (*Ground)(nil)

// Begin implements poke.Ground. It does nothing: threads' promises say which text they act as.
func (g *Ground) Begin(int, cpus.Change) {}

// Step implements poke.Workplace. Stores are made at once: the CPU has a buffer of its own.
func (g *Ground) Step(ctx context.Context, p *poke.Patcher) (poke.Status, error) {
	if g.err != nil {
		return poke.Ran, g.err
	}
	return p.Step(ctx, g, atOnce{})
}

// atOnce lets no store wait.
type atOnce struct{}

func (atOnce) Choose(cpus.Choice, int) int { return 1 }

// Wait implements poke.Workplace: rounds are over within microseconds where threads run.
func (g *Ground) Wait(ctx context.Context, op poke.Op) error {
	relax(&g.looks)
	if op == poke.Lock || op == poke.Expect {
		return context.Cause(ctx)
	}
	return g.err
}

// Passed implements poke.Workplace.
func (g *Ground) Passed(_ context.Context, p *poke.Patcher, _ poke.Step, failed bool) error {
	if g.Aim && !failed {
		if sites := p.InFlight(); sites != nil {
			g.m.aim(g.m.List(sites))
		}
	}
	return nil
}

// Late implements poke.Workplace.
func (g *Ground) Late(p *poke.Patcher) { p.Drain(0, g) }

// Free implements poke.Workplace.
func (g *Ground) Free() {
	if g.halted {
		g.ResumeMachine()
	}
}

// Peek implements poke.Ground.
func (g *Ground) Peek(site int) isa.Text { return g.m.Peek(site) }

// Literal implements poke.Ground: sites of this instruction set have none.
func (g *Ground) Literal(int) uint64 { return 0 }

// Store implements poke.Ground. It writes the bytes as memcpy does: the largest pieces first.
func (g *Ground) Store(site, off, n int, t isa.Text) {
	g.Stores++
	site, broken := g.rules.Lands(g.commons, 0, site, n, t)
	g.breaks(broken)
	for v := uint64(t); n > 0; {
		p := pointer(g.m.text.rw.at + uintptr(g.m.text.offsets[site]) + uintptr(off))
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

func (g *Ground) breaks(broken *cpus.Violation) {
	if broken != nil {
		g.Broken = append(g.Broken, *broken)
	}
}

// StoreLiteral implements poke.Ground.
func (g *Ground) StoreLiteral(int, uint64) {}

// Unsettle implements poke.Ground.
func (g *Ground) Unsettle(site int) { g.m.promiseTo(site, promisesNothing) }

// Settle implements poke.Ground: calls do what the text says from now on.
func (g *Ground) Settle(site int, want isa.Text) {
	if g.m.text.code.Act(site, want).Kind == isa.Call {
		g.m.promiseTo(site, promisesTracer)
	} else {
		g.m.promiseTo(site, promisesNobody)
	}
}

// Publish implements poke.Ground. It makes patches findable: their number, their addresses, and the target of each.
func (g *Ground) Publish(_ int, patches []poke.Patch, undo bool) {
	m := g.m
	g.breaks(g.rules.Overflows(0, patches))
	slots, acts := poke.Vector(m.text.code, int3.Vector, g.filling, patches, undo)
	n := len(acts)
	t := make([]uint64, 1+2*n)
	t[0] = uint64(n)
	for i, insn := range acts {
		t[1+i] = m.text.exec(slots.Addrs[i])
		if insn.Kind == isa.Call {
			t[1+n+i] = m.text.exec(insn.Target)
		}
	}
	storeWord(&published, uintptr(unsafe.Pointer(&t[0])))
	m.kept = append(m.kept, t) // where the plan does not wait for handlers, they may read it until the plan ends
	for _, t := range m.threads {
		atomic.AddUint32(&t.b.refs, 1)
	}
}

// Unpublish implements poke.Ground: the batch's own references are given back.
func (g *Ground) Unpublish() {
	for _, t := range g.m.threads {
		atomic.AddUint32(&t.b.refs, ^uint32(0))
	}
}

// Drained implements poke.Ground: no handler holds a reference.
func (g *Ground) Drained() bool {
	return !slices.ContainsFunc(g.m.threads, func(t *Thread) bool { return atomic.LoadUint32(&t.b.refs) != 0 })
}

// Clear implements poke.Ground.
func (g *Ground) Clear() { storeWord(&published, 0) }

// SetOps implements poke.Ground: tracers are code that is always there.
func (g *Ground) SetOps(uint64, cpus.Outcome) {}

// Share implements poke.Ground: there is one patcher.
func (g *Ground) Share(a poke.Access) bool {
	yes, broken := g.rules.Share(&g.commons, a, 0, 0)
	g.breaks(broken)
	return yes
}

// Send implements poke.Ground. A grace period sends nothing: it ends when every thread
// has passed a border between two calls, which every call does.
func (g *Ground) Send(c cpus.Cause, _ bool) {
	g.round.counts = int(c) < cpus.NumCauses
	if g.round.counts {
		g.Rounds++
	}
	g.looks, g.sent = 0, time.Now()
	if err := g.m.send(&g.round); err != nil {
		g.err = err
	}
}

// Answered implements poke.Ground.
func (g *Ground) Answered() bool {
	over := true
	for i := range g.m.threads {
		switch {
		case i == g.self || g.round.answered[i]:
		case !g.m.passed(&g.round, i):
			over = false
		default:
			g.round.answered[i] = true
			if g.round.counts {
				g.Answers[i]++
			}
		}
	}
	if over && g.round.counts {
		g.Times = append(g.Times, time.Since(g.sent))
	}
	return over
}

// StopMachine implements poke.Ground: threads stop before their next call. The barrier
// lets no thread begin one that it had not begun when it is over: a store and the load
// behind it may change places on this machine.
func (g *Ground) StopMachine(bool) bool {
	g.Stops++
	g.looks = 0
	g.halted = true
	for i, t := range g.m.threads {
		if i != g.self {
			t.Halt()
		}
	}
	if err := g.m.send(&g.round); err != nil {
		g.err = err
	}
	return true
}

// Stopped implements poke.Ground.
func (g *Ground) Stopped() bool {
	over := true
	for i, t := range g.m.threads {
		switch {
		case i == g.self || g.round.answered[i]:
		case !t.Between():
			over = false
		default:
			g.round.answered[i] = true
			g.Halts[i]++
		}
	}
	return over
}

// ResumeMachine implements poke.Ground. Threads fetch afresh before they go on.
func (g *Ground) ResumeMachine() {
	if err := threads.Sync(); err != nil {
		g.err = fmt.Errorf("resume: %w", err)
	}
	g.halted = false
	for i, t := range g.m.threads {
		if i != g.self {
			t.Continue()
		}
	}
}

// SyncSelf implements poke.Ground.
func (g *Ground) SyncSelf() { serialize() }
