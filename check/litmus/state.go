// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

// state is where an execution stands: a value that is compared and copied.
type state struct {
	fetched [maxThreads]uint8  // so many instructions
	done    [maxThreads]uint32 // which were performed; a site is when it is fetched
	asked   [maxThreads]uint8  // whose IPIs wait to be taken, a bit a thread
	reached [maxICs]uint8      // whom each invalidation has reached, a bit a thread

	newest [maxSites]uint8 // number of the newest version
	text   [maxSites][maxVersions]isa.Text
	clean  [maxSites]uint8             // the point of unification has this version or a newer one
	oldest [maxThreads][maxSites]uint8 // and a CPU's instruction side this or a newer one

	data [maxData]isa.Text
	regs [maxRegs]isa.Text
}

// machine is a test on a class.
type machine struct {
	test  *Test
	class *class
	order order
	ics   [maxThreads][maxInsns]uint8 // number of each invalidation
	lazy  bool                        // performs quiet instructions no sooner than others; for tests
}

func newMachine(t *Test, c *class) *machine {
	m := &machine{test: t, class: c, order: t.order(c)}
	n := uint8(0)
	for th := range t.threads {
		for i := range t.threads[th].insns {
			if t.threads[th].insns[i].op == opIC {
				m.ics[th][i] = n
				n++
			}
		}
	}
	return m
}

// start is the state before the first step.
func (m *machine) start() state {
	var s state
	for i := range m.test.sites {
		s.text[i][0] = textOf(m.test.sites[i].initial)
	}
	for i := range m.test.data {
		s.data[i] = textOf(m.test.data[i].initial)
	}
	for th := range m.test.threads {
		m.prefetch(&s, th)
	}
	return s
}

// prefetch goes on to the next site that is to be executed, or to what
// synchronises: fetching anything else early decides nothing. On rv fetches are
// performed in an order of their own.
func (m *machine) prefetch(s *state, th int) {
	insns := m.test.threads[th].insns
	for at := int(s.fetched[th]); at < len(insns) && (m.class.family == rv || insns[at].op != opExec) &&
		m.fetchable(s, th, at); at++ {
		s.fetched[th]++
	}
}

// fetchable tells whether the thread's next instruction can be fetched.
func (m *machine) fetchable(s *state, th, i int) bool {
	return m.order.fetch[th][i]&^s.done[th] == 0
}

// ready tells whether an instruction can be performed.
func (m *machine) ready(s *state, th, i int) bool {
	if i >= int(s.fetched[th]) || s.did(th, i) || m.order.perform[th][i]&^s.done[th] != 0 {
		return false
	}
	if m.test.threads[th].insns[i].op == opWait {
		for _, senders := range s.asked {
			if senders>>th&1 != 0 {
				return false
			}
		}
	}
	return true
}

func (s *state) did(th, i int) bool { return s.done[th]>>i&1 != 0 }

// interruptible tells whether the thread stands between two instructions: no
// later one was performed before an earlier one. Quiet ones do not count, they
// would only be performed again. Early fetches do not count either: the interrupt
// would discard them, and the same happens without them.
func (m *machine) interruptible(s *state, th int) bool {
	behind := false
	for i := range m.test.threads[th].insns {
		switch {
		case ops[m.test.threads[th].insns[i].op].quiet:
		case !s.did(th, i):
			behind = true
		case behind:
			return false
		}
	}
	return true
}

// ended tells whether all has been performed.
func (m *machine) ended(s *state) bool {
	for th := range m.test.threads {
		if s.done[th] != 1<<len(m.test.threads[th].insns)-1 {
			return false
		}
	}
	return true
}

// holds compares the outcome with registers, data and the text of sites.
func (t *Test) holds(regs, data []isa.Text, text func(site int) isa.Text) bool {
	for _, e := range t.outcome {
		var got isa.Text
		switch {
		case e.reg >= 0:
			got = regs[e.reg]
		case e.site >= 0:
			got = text(e.site)
		default:
			got = data[e.data]
		}
		if got != textOf(e.value) {
			return false
		}
	}
	return true
}

// bound is the oldest version that a fetch may return. On rv that is the newest one, for
// the fetch was perhaps made long before; a site that is read in parts is read now and then.
func (m *machine) bound(s *state, th, site int) uint8 {
	if m.class.dic || m.class.family == rv && m.class.whole(&m.test.sites[site]) {
		return s.newest[site]
	}
	return s.oldest[th][site]
}

// fetches are the texts that executing a site may turn out to be, newest first.
func (m *machine) fetches(s *state, th int, i *insn) []isa.Text {
	versions := make([]isa.Text, 0, maxVersions)
	for v := int(s.newest[i.site]); v >= int(m.bound(s, th, i.site)); v-- {
		versions = append(versions, s.text[i.site][v])
	}
	at, n := m.test.span(i)
	return mix(versions, at, n, m.class.whole(&m.test.sites[i.site]))
}

// mix is what one fetch of n parts from at on may return when the versions may
// be seen: one of them, or every part from any of them.
func mix(versions []isa.Text, at, n int, whole bool) []isa.Text {
	if !whole {
		out := []isa.Text{0}
		for part := range n {
			var seen, longer []isa.Text
			for _, v := range versions {
				seen = appendNew(seen, v.Slice(at+part, 1))
			}
			for _, t := range out {
				for _, x := range seen {
					longer = append(longer, t.Splice(part, 1, x))
				}
			}
			out = longer
		}
		return out
	}
	var out []isa.Text
	for _, v := range versions {
		out = appendNew(out, v.Slice(at, n))
	}
	return out
}

func appendNew(texts []isa.Text, t isa.Text) []isa.Text {
	if slices.Contains(texts, t) {
		return texts
	}
	return append(texts, t)
}
