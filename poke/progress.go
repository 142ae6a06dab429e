// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Progress is how far a Patcher has got, as a value that can be copied.
type Progress struct {
	At       int
	Done     int32
	Stage    uint8     // accesses made of the step, or of its current patch
	Buffered []StoreID // stores that are not visible yet, the oldest first
}

// StoreID names a store: patch Patch of step At.
type StoreID struct{ At, Patch int32 }

// Progress says how far the patcher has got; it may put what is buffered into
// room, to save an allocation.
func (p *Patcher) Progress(room []StoreID) Progress {
	room = room[:0]
	for _, s := range p.buffer {
		room = append(room, s.of)
	}
	return Progress{p.At, p.Done, p.stage, room}
}

// Resume sets the patcher to where another one of its plan had got.
func (p *Patcher) Resume(g Progress) {
	p.At, p.Done, p.stage = g.At, g.Done, g.Stage
	p.buffer = p.buffer[:0]
	for _, b := range g.Buffered {
		p.buffer = append(p.buffer, p.storeOf(b))
	}
}

// StoreAt tells what a store writes: n bytes from off on, of a site's text if
// code, else of its literal.
func (p *Patcher) StoreAt(id StoreID) (site, off, n int, text isa.Text, code bool) {
	s := p.storeOf(id)
	return int(s.site), int(s.off), int(s.n), s.text, s.kind == siteText
}

// Begun tells whether the step that comes next has made an access already, InPatch
// whether that was of the patch it is at, Clearing whether all handlers have left that a
// WaitHandlers waits for.
func (p *Patcher) Begun() bool    { return p.stage > 0 || p.Done > 0 }
func (p *Patcher) InPatch() bool  { return p.stage > 0 }
func (p *Patcher) Clearing() bool { return p.stage == clearing }

// Place is where the patcher is, without what it has buffered.
func (p *Patcher) Place() (at int, done int32, stage uint8) { return p.At, p.Done, p.stage }

// Waiting is how many stores are buffered; Holds tells whether one of them is to
// a site's text, or to its literal.
func (p *Patcher) Waiting() int { return len(p.buffer) }

// Holds is the other half of Waiting.
func (p *Patcher) Holds(site int32, literal bool) bool {
	at := place{kind: siteText, site: site}
	if literal {
		at.kind = siteLiteral
	}
	return p.buffer.oldest(at) >= 0
}

// HoldsBatch tells whether a Publish or an Unpublish is buffered, HoldsOps whether an
// Attach or a Release is.
func (p *Patcher) HoldsBatch() bool { return p.holds(theBatch) }
func (p *Patcher) HoldsOps() bool   { return p.holds(anOps) }

func (p *Patcher) holds(k placeKind) bool {
	return slices.ContainsFunc(p.buffer, func(s store) bool { return s.kind == k })
}

// Drain makes the i-th of the buffered stores visible, unless an older one to the
// same place must be first.
func (p *Patcher) Drain(i int, g Ground) bool {
	if i >= len(p.buffer) || p.buffer.oldest(p.buffer[i].place) < i {
		return false
	}
	p.release(i, g)
	return true
}

// Stores lists every store that the plan can let wait, and tells how many can wait at
// once: one for each place.
func (p *Patcher) Stores() (list []StoreID, most int) {
	places := map[place]bool{}
	for at, st := range p.Plan {
		if st.Op == Write {
			for i := st.From; i < st.To; i++ {
				list = append(list, StoreID{int32(at), i})
			}
		} else if st.Op.stores() {
			list = append(list, StoreID{int32(at), st.From})
		}
	}
	for _, of := range list {
		places[p.storeOf(of).place] = true
	}
	return list, len(places)
}
