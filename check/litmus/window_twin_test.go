// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// The slow twin of class.window: the window model with the positions and versions of
// package cpus, and a search of its own.

// windowState is where an execution of the window model stands.
type windowState struct {
	at       [maxThreads]uint8 // so many instructions
	asked    [maxThreads]uint8
	synced   [maxThreads]cpus.Seq
	seq      cpus.Seq // of the last store
	n        [maxSites]uint8
	versions [maxSites][maxVersions]cpus.Version // oldest first
	data     [maxData]isa.Text
	regs     [maxRegs]isa.Text
}

func (t *Test) windowStart() windowState {
	s := windowState{seq: 1}
	for i := range t.sites {
		s.versions[i][0], s.n[i] = cpus.Version{Seq: 1, Text: textOf(t.sites[i].initial)}, 1
	}
	for i := range t.data {
		s.data[i] = textOf(t.data[i].initial)
	}
	for th := range s.synced {
		s.synced[th] = 1
	}
	return s
}

// store appends a version.
func (s *windowState) store(site, at, n int, text isa.Text) {
	old := s.versions[site][s.n[site]-1].Text
	s.seq++
	s.versions[site][s.n[site]] = cpus.Version{Seq: s.seq, Text: old.Splice(at, n, text)}
	s.n[site]++
}

// window is what a CPU may fetch from a site, newest first.
func (s *windowState) window(th, site int) []isa.Text {
	texts := make([]isa.Text, 0, maxVersions)
	for v := int(s.n[site]) - 1; v >= 0; v-- {
		texts = append(texts, s.versions[site][v].Text)
		if s.versions[site][v].Seq <= s.synced[th] {
			break
		}
	}
	return texts
}

// windowNext calls visit with every state that can follow.
func (t *Test) windowNext(c *class, s *windowState, visit func(windowState)) {
	for th := range t.threads {
		if s.asked[th] != 0 {
			next := *s
			next.asked[th], next.synced[th] = 0, s.seq
			visit(next)
		}
		if int(s.at[th]) == len(t.threads[th].insns) {
			continue
		}
		i := &t.threads[th].insns[s.at[th]]
		next := *s
		next.at[th]++
		if i.op == opExec {
			at, n := t.span(i)
			for _, text := range mix(s.window(th, i.site), at, n, c.window().whole(&t.sites[i.site])) {
				next.regs[i.reg] = text
				visit(next)
			}
			continue
		}
		if t.windowPerform(&next, th, i) {
			visit(next)
		}
	}
}

// windowPerform performs an instruction; false while it waits.
func (t *Test) windowPerform(s *windowState, th int, i *insn) bool {
	switch i.op {
	case opRead:
		if i.data >= 0 {
			s.regs[i.reg] = s.data[i.data]
		} else {
			s.regs[i.reg] = s.versions[i.site][s.n[i.site]-1].Text
		}
	case opWrite:
		s.data[i.data] = textOf(i.text)
	case opStore:
		at, n := t.span(i)
		s.store(i.site, at, n, textOf(i.text))
	case opISB, opFenceI, opSerialise:
		s.synced[th] = s.seq
	case opIPI:
		for target := range t.threads {
			if target != th {
				s.asked[target] |= 1 << th
			}
		}
	case opWait:
		for _, senders := range s.asked {
			if senders>>th&1 != 0 {
				return false
			}
		}
	}
	return true
}

// windowExplore calls end for every last state, until it returns false.
func (t *Test) windowExplore(ctx context.Context, c *class, end func(s *windowState) bool) error {
	first := t.windowStart()
	seen := map[windowState]struct{}{first: {}}
	queue := []windowState{first}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if len(seen) > maxStates {
			return ErrTooLarge
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if t.windowEnded(&s) && !end(&s) {
			return nil
		}
		t.windowNext(c, &s, func(next windowState) {
			if _, ok := seen[next]; !ok {
				seen[next] = struct{}{}
				queue = append(queue, next)
			}
		})
	}
	return nil
}

func (t *Test) windowEnded(s *windowState) bool {
	for th := range t.threads {
		if int(s.at[th]) < len(t.threads[th].insns) {
			return false
		}
	}
	return true
}
