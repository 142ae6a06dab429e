// SPDX-License-Identifier: Apache-2.0

package timed

// While a round is on its way to thousands of CPUs, each of them runs into the batch's breakpoints again and again: the
// more CPUs, the longer the round and the more traps of each, so that traps grow with the square of the CPUs. But
// nothing changes meanwhile that a call can meet, and no CPU's calls depend on another CPU. So the calls of a CPU need
// not be drawn in their order among those of all others: they are drawn in one go when something happens to the CPU,
// from when that was last the case, each call an exponential time after the end of the trap before it.
//
// That goes for sites at which a trap has been made already: the calls of a CPU to these and to all others are two
// independent Poisson processes (calls.go). Calls to the others stay events of their own.

// stretch is such a time. TestStretchLaw holds it against a machine that executes every call.
type stretch struct {
	open   bool
	begun  int // how many there have been
	met    int // calls that were events since the patcher began to wait
	look   int // so many of them, and one looks whether a stretch is worth it
	known  weighted
	others weighted
	cold   []int32 // sites of the batch at which calls meet nothing any more, or yet: these need not be drawn at all
	since  []Nanos // by CPU that makes calls: they are drawn up to then
}

// watch begins to look for a stretch: each site of the batch has been called some eight times before, most of them more
// often.
func (st *stretch) watch(sites int) { st.met, st.look = 0, 8*sites }

// met notes a call that was an event, and begins a stretch where the CPUs are about to make more than two each that need
// not be.
func (m *Machine) met() {
	st, c := &m.stretch, m.calls
	if st.met++; st.met != st.look {
		return
	}
	st.look *= 2
	if st.open || m.patch.awaits != forAnswers || m.cfg.Calls != HotOnly || m.listener != nil || c.parks > 0 ||
		c.recentWeight() > 0 {
		return
	}
	longest := m.sortBatch()
	end := m.still() - longest // every trap that begins before is over while the batch is as it is
	if float64(end-m.now)*c.rate*(c.batch.total()-st.others.total()) < 2 {
		return
	}
	for _, site := range st.cold {
		c.change(m.now, site, func(h *heat) { h.published = false })
	}
	for _, i := range c.busy {
		st.since[i] = m.now
	}
	st.begun++
	c.together = &st.others
	st.open = true
	m.ask(end, evPatcher, stretchEnds)
	m.drawCall(float64(m.now), m.drawn())
}

// sortBatch says of each site of the batch how its calls are drawn in a stretch, and how long the longest trap is.
func (m *Machine) sortBatch() (longest Nanos) {
	st, c := &m.stretch, m.calls
	st.known.clear()
	st.others.clear()
	st.cold = st.cold[:0]
	for _, site := range c.batch.sites {
		switch {
		case m.repeats(site):
			st.known.add(site, c.weight[site])
			longest = max(longest, m.traps[site].takes)
		case m.seen(site) && !c.heat[site].meets:
			st.cold = append(st.cold, site)
		default:
			st.others.add(site, c.weight[site])
		}
	}
	return longest
}

// endStretch draws what is left of each CPU's calls.
func (m *Machine) endStretch() {
	for _, i := range m.calls.busy {
		m.settle(int(i))
	}
	for _, site := range m.stretch.cold {
		m.calls.change(m.now, site, func(h *heat) { h.published = true })
	}
	m.stretch.open = false
	m.calls.together = &m.calls.batch
	m.drawCall(float64(m.now), m.drawn())
}

// settle draws a CPU's calls up to now, before anything else happens to it. The last one may not be over.
func (m *Machine) settle(i int) {
	st, c := &m.stretch, m.calls
	if !st.open || c.idle[i] || len(st.known.sites) == 0 {
		return
	}
	s, since, all := &m.cpus[i], st.since[i], st.known.total()
	st.since[i] = m.now
	for mean := 1 / (c.rate * all); ; {
		wait := c.rng.ExpFloat64() * mean
		if wait >= float64(m.now-since) {
			return
		}
		since += Nanos(wait)
		t := &m.traps[st.known.at(c.rng.Float64()*all)]
		m.book(s, t)
		m.events += 2 // its beginning and its end
		end := since + t.takes
		spent := float64(min(end, m.now) - since) // on something else than calls
		c.coldTime -= spent * (1 - c.hot)
		c.coldTrace -= spent * c.traced
		if end > m.now {
			s.active = true
			m.free(s, false)
			m.ask(end, evCPU, i)
			return
		}
		if since = end; t.behind.There() {
			m.run(i, false)
		}
	}
}
