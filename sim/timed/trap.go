// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// A trap is two events, the call and its end, as long as the batch that its handler looks into stays published:
// interrupts that come meanwhile wait for the end anyway. The first trap at a site makes the handler's steps. All others
// that meet the same text and the same batch come to the same, since no step of a handler depends on who makes it.
// Thousands of CPUs run into the same few hundred breakpoints while a round is under way.

// trap is the last one at a site that began a call and found an entry.
type trap struct {
	batch       uint32
	comparisons int32
	met         cpus.Seq // of the site's text
	takes       Nanos
	events      uint64
	behind      cpus.Task // what the CPU is in the middle of when it is over
}

// still is a time before which the published batch stays.
func (m *Machine) still() Nanos {
	p := &m.patch
	switch {
	case !p.running || p.Waiting() > 0 || p.At == len(p.Plan):
		return m.now
	case p.awaits == forAnswers:
		return max(max(m.now, p.reached)+nanos(m.costs.Answer), p.busy)
	case p.awaits == forHandlers: // the last one lets it go on at once
		return m.now
	}
	each, st := 0.0, &p.Plan[p.At]
	switch st.Op {
	case poke.Verify:
		each = m.costs.Verify
	case poke.Write:
		each = min(m.costs.Store, m.costs.StoreLiteral)
	}
	return p.next + nanos(each)*Nanos(st.To-st.From-p.Done-1)
}

// handle lets a CPU, whose present step is over at a time, make the steps of its handler, too. It returns when the last
// of them is over. begins: the CPU's present step began a call.
func (m *Machine) handle(i int, s *cpuState, until Nanos, begins bool) Nanos {
	now, events, still := m.now, m.events, m.still()
	broken, _ := m.Violations()
	begins = begins && s.cpu.Phase == cpus.Trapped
	for until < still && handling(s.cpu.Phase) && !m.contends(s) {
		m.now = until
		if cost := m.step(i, s); cost > 0 {
			until += cost
			m.events++
		}
	}
	m.now = now
	if still, _ := m.Violations(); begins && still == broken && s.cpu.AtBorder() && m.seen(s.cpu.Site) {
		m.traps[s.cpu.Site] = trap{m.batch, m.comparisons, m.text.sites[s.cpu.Site].is.Seq, until - now, m.events - events,
			s.cpu.Task}
	}
	return until
}

// handling tells whether a CPU's next step is one of a handler that has found an entry so far.
func handling(p cpus.Phase) bool {
	return p == cpus.Trapped || p == cpus.Searching || p == cpus.Leaving || p == cpus.Returning
}

// seen tells whether every CPU fetches the newest text of a site.
func (m *Machine) seen(site int32) bool { return m.text.sites[site].at+m.lag <= m.now }

// repeat lets a CPU that is between two calls run into a site's breakpoint as the last one did, if nothing has changed
// since. Listeners are told of each step, and a line that all handlers share is waited for.
func (m *Machine) repeat(i int, s *cpuState, site int32) bool {
	t := &m.traps[site]
	end := m.now + t.takes
	if m.listener != nil || !m.repeats(site) || end >= m.still() {
		return false
	}
	m.book(s, t)
	s.active = true
	m.free(s, false)
	m.ask(end, evCPU, i)
	return true
}

// repeats tells whether the next trap at a site comes to what the last one did.
func (m *Machine) repeats(site int32) bool {
	t := &m.traps[site]
	return t.batch == m.batch && t.met == m.text.sites[site].is.Seq && m.seen(site)
}

// book has a CPU make a trap.
func (m *Machine) book(s *cpuState, t *trap) {
	s.tally[cpus.Begun]++
	s.tally[cpus.Trap]++
	if !t.behind.There() {
		s.tally[cpus.Untraced]++
	}
	s.cpu.Unpark(t.behind)
	if m.code.Path.Syncs {
		s.cpu.Synced = m.text.seq()
	}
	s.stolen += t.takes
	m.compared += uint64(t.comparisons)
	m.events += t.events
}
