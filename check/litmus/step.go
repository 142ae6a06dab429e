// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus/isa"
)

// moveKind is what happens in one step of the model.
type moveKind uint8

const (
	fetchSite moveKind = iota // a site is fetched, and so what it executes as is decided
	perform                   // an instruction is performed
	reach                     // an invalidation reaches one CPU
	interrupt                 // a CPU takes all IPIs that wait, and answers
)

// move is one step.
type move struct {
	kind   moveKind
	thread uint8
	insn   uint8
	target uint8    // whom the invalidation reaches
	text   isa.Text // what was fetched
}

// moves lists the possible next moves. A quiet instruction that is ready comes
// alone: it only lets others go on, so it can be performed first without loss,
// and it moves the bound least (fence.i, serialise) when it is early. Where fetches
// need not come in order, fence.i is quiet once all fetches before it are made.
func (m *machine) moves(s *state, out []move) []move {
	out = out[:0]
	for th := range m.test.threads {
		for i := range int(s.fetched[th]) {
			if !m.quiet(s, th, i) || !m.ready(s, th, i) {
				continue
			}
			out = append(out, move{kind: perform, thread: uint8(th), insn: uint8(i)})
			if !m.lazy {
				return out
			}
		}
	}
	for th := range m.test.threads {
		out = m.threadMoves(s, th, out)
	}
	return out
}

// quiet tells whether an instruction only lets others go on. A fence.i that overtakes a
// fetch takes old text from it.
func (m *machine) quiet(s *state, th, i int) bool {
	insns := m.test.threads[th].insns
	if insns[i].op == opFenceI {
		for k := range i {
			if insns[k].op == opExec && !s.did(th, k) {
				return false
			}
		}
	}
	return ops[insns[i].op].quiet
}

func (m *machine) threadMoves(s *state, th int, out []move) []move {
	insns := m.test.threads[th].insns
	if i := int(s.fetched[th]); i < len(insns) && m.fetchable(s, th, i) {
		out = m.fetchMoves(s, th, i, out)
	}
	for i := range int(s.fetched[th]) {
		switch {
		case m.quiet(s, th, i) || !m.ready(s, th, i):
		case insns[i].op == opExec:
			out = m.fetchMoves(s, th, i, out)
		case insns[i].op == opIC && m.class.family == arm:
			for target := range m.test.threads {
				if s.reached[m.ics[th][i]]>>target&1 == 0 {
					out = append(out, move{kind: reach, thread: uint8(th), insn: uint8(i), target: uint8(target)})
				}
			}
		default:
			out = append(out, move{kind: perform, thread: uint8(th), insn: uint8(i)})
		}
	}
	if s.asked[th] != 0 && m.interruptible(s, th) {
		out = append(out, move{kind: interrupt, thread: uint8(th)})
	}
	return out
}

// fetchMoves are the texts that a site may be fetched as.
func (m *machine) fetchMoves(s *state, th, i int, out []move) []move {
	for _, t := range m.fetches(s, th, &m.test.threads[th].insns[i]) {
		out = append(out, move{kind: fetchSite, thread: uint8(th), insn: uint8(i), text: t})
	}
	return out
}

// apply makes one step.
func (m *machine) apply(s state, v move) state {
	th := int(v.thread)
	switch v.kind {
	case interrupt:
		if m.class.family != arm { // rv: the handler's fence.i; x86 and windows: the interrupt itself
			m.refresh(&s, th)
		}
		s.asked[th] = 0
		return s
	case fetchSite:
		s.regs[m.test.threads[th].insns[v.insn].reg] = v.text
		if v.insn == s.fetched[th] {
			s.fetched[th]++
		}
	case reach:
		site := m.test.threads[th].insns[v.insn].site
		s.oldest[v.target][site] = max(s.oldest[v.target][site], m.unified(&s, site))
		ic := &s.reached[m.ics[th][v.insn]]
		if *ic |= 1 << v.target; *ic != 1<<len(m.test.threads)-1 {
			return s
		}
	case perform:
		m.perform(&s, th, &m.test.threads[th].insns[v.insn])
	}
	s.done[th] |= 1 << v.insn
	m.prefetch(&s, th)
	return s
}

// perform does what an instruction does to what CPUs share, and to its own CPU.
func (m *machine) perform(s *state, th int, i *insn) {
	switch i.op {
	case opRead:
		if i.data >= 0 {
			s.regs[i.reg] = s.data[i.data]
		} else {
			s.regs[i.reg] = s.text[i.site][s.newest[i.site]]
		}
	case opWrite:
		s.data[i.data] = textOf(i.text)
	case opStore:
		at, n := m.test.span(i)
		old := s.newest[i.site]
		s.newest[i.site]++
		s.text[i.site][old+1] = s.text[i.site][old].Splice(at, n, textOf(i.text))
		if m.class.family == x86 && !i.marked("alias") {
			s.oldest[th][i.site] = old + 1
		}
	case opDC:
		s.clean[i.site] = s.newest[i.site]
	case opISB:
		if m.class.family == windows {
			m.refresh(s, th)
		}
	case opFenceI, opSerialise:
		m.refresh(s, th)
	case opIPI:
		for target := range m.test.threads {
			if target != th {
				s.asked[target] |= 1 << th
			}
		}
	}
}

// unified is the oldest version that the point of unification may have.
func (m *machine) unified(s *state, site int) uint8 {
	if m.class.idc {
		return s.newest[site]
	}
	return s.clean[site]
}

// refresh makes a CPU's instruction side forget what is not the newest.
func (m *machine) refresh(s *state, th int) { s.oldest[th] = s.newest }

// words tells a person what happens in a step from s.
func (m *machine) words(s *state, v move) string {
	name := m.test.threads[v.thread].name
	if v.kind == interrupt {
		return fmt.Sprintf("%s takes the interrupt, fetches afresh and answers", name)
	}
	i := &m.test.threads[v.thread].insns[v.insn]
	line := m.test.line(i)
	switch {
	case v.kind == fetchSite:
		return fmt.Sprintf("%s fetches for %q: it executes %s%s", name, line, show(v.text), m.lag(s, i, v.text))
	case v.kind == reach:
		site := m.test.sites[i.site].name
		return fmt.Sprintf("%q of %s reaches %s: it may fetch %s from %q on", line, name,
			m.test.threads[v.target].name, site, show(s.text[i.site][max(s.oldest[v.target][i.site], m.unified(s, i.site))]))
	case i.op == opRead:
		after := m.apply(*s, v)
		return fmt.Sprintf("%s performs %q: it returns %s", name, line, show(after.regs[i.reg]))
	default:
		return fmt.Sprintf("%s performs %q", name, line)
	}
}

// lag says how what was fetched differs from memory.
func (m *machine) lag(s *state, i *insn, got isa.Text) string {
	at, n := m.test.span(i)
	now := s.text[i.site][s.newest[i.site]].Slice(at, n)
	if got == now {
		return ", as in memory"
	}
	return fmt.Sprintf(", though memory has %s", show(now))
}
