// SPDX-License-Identifier: Apache-2.0

package poke

import "github.com/textpoke/textpoke/cpus/isa"

// store is one store on its way to memory.
type store struct {
	site   int32
	off, n uint8
	text   isa.Text // or the ops
	data   bool     // a literal
	of     StoreID  // which it is
}

// buffer holds stores that are not visible yet, the oldest first. Younger stores
// may overtake those in it, but for stores to the same place: their order is kept
// everywhere.
type buffer []store

// bufferedStores bounds the buffer: about what current cores have.
const bufferedStores = 56

// makeWay makes one store visible that must be before s: an older one to the
// same place, or the oldest where the buffer is full. It tells whether there was
// one.
func (b *buffer) makeWay(s store, g Ground) bool {
	for i, old := range *b {
		if old.site == s.site && old.data == s.data {
			b.release(i, g)
			return true
		}
	}
	if len(*b) == bufferedStores {
		return b.drainOne(g)
	}
	return false
}

// over is what a load of this CPU reads where memory has t: its own stores that
// wait come first.
func (b buffer) over(site int32, data bool, t isa.Text) isa.Text {
	for _, s := range b {
		if s.site == site && s.data == data {
			t = t.Splice(int(s.off), int(s.n), s.text)
		}
	}
	return t
}

// drainOne makes the oldest store visible, and tells whether there was one.
func (b *buffer) drainOne(g Ground) bool {
	if len(*b) == 0 {
		return false
	}
	b.release(0, g)
	return true
}

// drain makes all visible.
func (b *buffer) drain(g Ground) {
	for b.drainOne(g) {
	}
}

func (b *buffer) release(i int, g Ground) {
	(*b)[i].apply(g)
	*b = append((*b)[:i], (*b)[i+1:]...)
}

// apply is the store itself. Half of a pointer goes beside the other half as it
// is by then; nobody else writes literals, so that reading it is no access of its
// own.
func (s store) apply(g Ground) {
	if !s.data {
		g.Store(int(s.site), int(s.off), int(s.n), s.text)
		return
	}
	ops := s.text
	if s.n < 8 {
		ops = isa.Text(g.Literal(int(s.site))).Splice(int(s.off), int(s.n), s.text)
	}
	g.StoreLiteral(int(s.site), uint64(ops))
}
