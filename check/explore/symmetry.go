// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/textpoke/textpoke/poke"

// canonical exchanges equal CPUs so that states that differ only in their order have the same
// words: a CPU's word holds all of its state, and no step asks for its number.
func (e *expander) canonical(words []uint64) {
	n := len(e.m.Roles)
	for i := range n {
		e.order[i] = uint8(i)
	}
	if !e.reduce.Symmetry {
		return
	}
	for i := 1; i < n; i++ {
		for k := i; k > 0; k-- {
			j := e.m.alike[k] // the CPU before it of the same class
			if j < 0 || !less(words, k, int(j), n, e.m.layout.own) {
				break
			}
			for at := 0; at < e.m.layout.own*n; at += n {
				words[at+k], words[at+int(j)] = words[at+int(j)], words[at+k]
			}
			e.order[k], e.order[j] = e.order[j], e.order[k]
			k = int(j) + 1
		}
	}
}

// less orders two CPUs by their words, of which each has own.
func less(words []uint64, a, b, n, own int) bool {
	for at := 0; at < own*n; at += n {
		if words[at+a] != words[at+b] {
			return words[at+a] < words[at+b]
		}
	}
	return false
}

// findAlike says for each CPU which one before it is its equal: of the same role,
// and no patcher's home.
func (m *Model) findAlike() {
	for i, r := range m.Roles {
		m.alike = append(m.alike, -1)
		if m.houses(i) {
			continue
		}
		for k := i - 1; k >= 0; k-- {
			same := func(set uint64) bool { return set>>k&1 == set>>i&1 }
			if m.Roles[k] == r && !m.houses(k) && same(m.Code.Deaf) && same(m.Code.Disturbed) {
				m.alike[i] = int8(k)
				break
			}
		}
	}
}

// findPast works out from where on a program is about no site in particular any
// more.
func (m *Model) findPast() {
	for _, p := range m.Programs {
		past := 0
		if p.Menu != nil { // it always comes back to them
			past = len(p.Plan) + 1
		}
		for at, s := range p.Plan {
			switch s.Op {
			case poke.Verify, poke.Write, poke.Settle, poke.Map, poke.Publish:
				past = max(past, at+1)
			}
		}
		m.past = append(m.past, past)
	}
}

// sitesAlike tells whether only CPUs at a site tell it from another one: every site is the same,
// and no patcher will change that.
func (w *world) sitesAlike() bool {
	if w.logged > 0 || w.published != 0 || w.m.Preempt || w.m.Code.Path.NMIs {
		return false
	}
	for i := range w.m.Programs {
		if p := &w.patcher[i]; p.At < w.m.past[i] || p.HoldsBatch() {
			return false
		}
	}
	for i := range w.m.Code.Sites {
		for k := range w.m.Programs { // an ops that waits to be released is about no site
			if p := &w.patcher[k]; p.Holds(int32(i), false) || p.Holds(int32(i), true) {
				return false
			}
		}
		if w.base[i] != w.base[0] || w.settled[i] != w.settled[0] || w.begun[i] != w.begun[0] ||
			w.literal[i] != w.literal[0] {
			return false
		}
	}
	return true
}

// exchangeSites numbers equal sites in the order in which CPUs are about them, so
// that states that differ only in that order have the same words.
func (e *expander) exchangeSites(words []uint64) {
	var number [MaxSites]int // plus 1
	n := 0
	for i := range e.m.Roles {
		site, about := e.m.codec.Site(words[i])
		if !about {
			continue
		}
		if number[site] == 0 {
			n++
			number[site] = n
		}
		words[i] = e.m.codec.WithSite(words[i], number[site]-1)
	}
	e.canonical(words)
}
