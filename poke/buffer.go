// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// place is where a store goes. The order of stores to one place is kept everywhere.
type place struct {
	kind placeKind
	site int32  // of text and literals
	ops  uint64 // that is attached or released
}

type placeKind uint8

const (
	siteText    placeKind = iota
	siteLiteral           // the pointer to its ops
	theBatch              // what handlers find, and the references on it
	anOps                 // what a call through it amounts to
)

// store is one store on its way to memory.
type store struct {
	place
	off, n uint8
	text   isa.Text // or the ops that a literal is to name
	of     StoreID  // which it is
}

// buffer holds stores that are not visible yet, the oldest first. Younger stores
// may overtake those in it, but for stores to the same place.
type buffer []store

// bufferedStores bounds the buffer: about what current cores have.
const bufferedStores = 56

// oldest is the oldest store to a place, -1 for none.
func (b buffer) oldest(at place) int {
	for i := range b {
		if b[i].place == at {
			return i
		}
	}
	return -1
}

// over is what a load of this CPU reads where memory has t: its own stores that
// wait come first.
func (b buffer) over(at place, t isa.Text) isa.Text {
	for _, s := range b {
		if s.place == at {
			t = t.Splice(int(s.off), int(s.n), s.text)
		}
	}
	return t
}

// put makes a store, or lets it wait where stores do. It is false when another one
// had to become visible before: an older one to the same place, or the oldest where
// the buffer is full.
func (p *Patcher) put(s store, g Ground, ch cpus.Chooser) bool {
	if p.Code.Traits.StoresBuffered {
		if p.push(s.place, g) {
			return false
		}
		if len(p.buffer) == bufferedStores {
			p.release(0, g)
			return false
		}
		if ch.Choose(cpus.ChooseDrain, 4) == 0 { // one in four is overtaken by younger ones
			p.buffer = append(p.buffer, s)
			return true
		}
	}
	p.make(s, g)
	return true
}

// push makes the oldest store to a place visible, and tells whether there was one.
func (p *Patcher) push(at place, g Ground) bool {
	i := p.buffer.oldest(at)
	if i >= 0 {
		p.release(i, g)
	}
	return i >= 0
}

// drainOne makes the oldest store visible, and tells whether there was one.
func (p *Patcher) drainOne(g Ground) bool {
	if len(p.buffer) == 0 {
		return false
	}
	p.release(0, g)
	return true
}

// drain makes all visible.
func (p *Patcher) drain(g Ground) {
	for p.drainOne(g) {
	}
}

func (p *Patcher) release(i int, g Ground) {
	p.make(p.buffer[i], g)
	p.buffer = append(p.buffer[:i], p.buffer[i+1:]...)
}

// make is the store itself. Half of a pointer goes beside the other half as it is by then. Only
// this patcher writes literals, so that reading it is no access of its own.
func (p *Patcher) make(s store, g Ground) {
	st := p.Plan[s.of.At]
	switch s.kind {
	case siteText:
		if st.Part == Breakpoint {
			p.begin(st, s.of.Patch, g)
		}
		g.Store(int(s.site), int(s.off), int(s.n), s.text)
	case siteLiteral:
		ops := s.text
		if s.n < 8 {
			ops = isa.Text(g.Literal(int(s.site))).Splice(int(s.off), int(s.n), s.text)
		}
		g.StoreLiteral(int(s.site), uint64(ops))
	case theBatch:
		if st.Op == Publish {
			for i := st.From; i < st.To; i++ {
				p.begin(st, i, g)
			}
			g.Publish(int(s.of.At), p.Patches[st.From:st.To], st.Undo)
		} else {
			g.Unpublish()
		}
	default:
		o := cpus.CalledTracer
		if st.Op == Release {
			o = cpus.CalledFreed
		}
		g.SetOps(s.ops, o)
	}
}

// begin notes what a step begins to make of a patch's site.
func (p *Patcher) begin(st Step, patch int32, g Ground) {
	g.Begin(int(p.Patches[patch].Site), p.Patches[patch].Change(st.Undo))
}
