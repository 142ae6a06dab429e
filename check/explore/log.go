// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// The log holds the stores that some CPU may not have seen. Positions in it are relative, and
// entries that no CPU needs are dropped: so patchers that go on for ever have finitely many states,
// though some CPU may never fetch afresh.

// logLength is how many stores there can be in the log, of so many that are made once.
func (m *Model) logLength(once int) (n int) {
	if m.Workload() == Once {
		return min(once, maxStores)
	}
	for site, texts := range m.texts {
		if m.grains[site] > 1 && m.Code.Fetch.InOrder() {
			return maxStores
		}
		n += len(m.Roles) + 2 + len(texts) // begin some window or are promised, or differ; see spare
	}
	return min(n, maxStores)
}

// noRoom says why successors were left out.
func (m *Model) noRoom() string {
	return fmt.Sprintf("some CPU may not have seen %d stores, and no more can be told apart", m.layout.stores)
}

// outdate counts the promises that are made now as the first ones: which of the earlier
// ones a CPU has met makes no difference.
func (w *world) outdate() {
	for site := range w.m.Code.Sites {
		now := w.settled[site]
		w.settled[site] = cpus.PromiseOf(now.Seq(), 1)
		w.eachMet(site, func(p cpus.Promise) cpus.Promise {
			if p == now {
				return w.settled[site]
			}
			return cpus.PromiseOf(1, 0)
		})
	}
}

// eachMet exchanges the promises about a site that CPUs there have met, parked tasks, and
// code that NMIs have interrupted.
func (w *world) eachMet(site int, f func(cpus.Promise) cpus.Promise) {
	exchange := func(of int32, p *cpus.Promise, i int) {
		if int(of) != site || p.Seq() == 0 {
			return
		}
		if was := *p; f(was) != was {
			*p = f(was)
			w.writes(i)
		}
	}
	for i := range w.m.Roles {
		exchange(w.cpu[i].Site, &w.cpu[i].Promise, i)
		exchange(w.parked[i].Site, &w.parked[i].Promise, i)
		exchange(w.under[i].Site, &w.under[i].Promise, i)
	}
}

// putOff keeps promises about a store to come where a store to another site has come
// first: when that one is dropped, its position is an older version's.
func (w *world) putOff(stored int) {
	for site := range w.m.Code.Sites {
		was := w.settled[site]
		if site == stored || was.Seq() != w.Seq() {
			continue
		}
		now := was.With(w.Seq() + 1)
		w.settled[site] = now
		w.eachMet(site, func(p cpus.Promise) cpus.Promise {
			if p == was {
				return now
			}
			return p
		})
	}
}

// needsLess tells whether a CPU's own step may have made it or others need less of the log than
// before: entries that were needless before are dropped already. Most steps do not.
func (w *world) needsLess(cpu int) bool {
	c := &w.cpu[cpu]
	return w.notes.shared || c.Synced != w.was.Synced ||
		c.Phase != w.was.Phase && (c.Phase == cpus.Asleep || c.Phase == cpus.Down)
}

// forget drops the stores that every CPU has seen, and counts positions from there: only
// their order matters. Then it drops those that make no difference.
func (w *world) forget() {
	oldest := w.Seq()
	traits := &w.m.Code.Traits
	for i := range w.m.Roles {
		c := &w.cpu[i]
		asleep := c.Phase == cpus.Asleep && traits.InterruptSyncs && !w.m.Code.Path.Tells && !w.m.Code.Path.NMIs
		if asleep && w.m.Code.Deaf>>i&1 == 0 || c.Phase == cpus.Down {
			// The CPU fetches again only after an interrupt, or when it is brought up,
			// and both make it fetch afresh.
			c.Synced = w.Seq()
			w.writes(i)
		}
		oldest = min(oldest, c.Synced)
	}
	if by := int(oldest - 1); by > 0 {
		for _, s := range w.log[:by] {
			w.base[s.site] = s.text
		}
		w.cut(0, by)
	}
	for site := 0; w.logged > 1 && site < len(w.m.Code.Sites); {
		h := w.history(site)
		from, to := w.m.spare(&h, site)
		for i := to - 1; i >= from && to > 0; i-- {
			w.cut(h.at[i], 1)
		}
		if to == 0 {
			site++
		}
	}
}

// cut takes n stores out of the log.
func (w *world) cut(from, n int) {
	w.notes = allWritten
	copy(w.log[from:], w.log[from+n:w.logged])
	w.logged -= n
	clear(w.log[w.logged : w.logged+n])
	first, by := cpus.Seq(from+2), cpus.Seq(n)
	for i := range w.m.Roles {
		w.cpu[i].Shift(first, by)
		w.parked[i].Promise = w.parked[i].Promise.Shift(first, by)
		w.under[i].Promise = w.under[i].Promise.Shift(first, by)
	}
	for i := range w.m.Code.Sites {
		w.settled[i] = w.settled[i].Shift(first, by)
	}
}

// findGrains works out how many parts of one fetch at a site can come from different
// versions.
func (m *Model) findGrains() {
	m.grains = make([]int, len(m.Code.Sites))
	for site, at := range m.Code.Sites {
		m.grains[site] = m.Code.Grains(at)
		for _, e := range m.codec.Inside[site] {
			m.grains[site] = max(m.grains[site], m.Code.Grains(at+records.Addr(e.Off)))
		}
	}
}

// history is what a site's text has been, the oldest first; the first is what every CPU
// has at least seen.
type history struct {
	n    int
	text [maxStores + 2]uint8
	at   [maxStores + 2]int // in the log
	kept [maxStores + 2]bool
}

// history reads a site's history out of the log. It keeps the version that some CPU has seen
// last, where its window begins, a promised version, and the newest.
func (w *world) history(site int) (h history) {
	h.text[0], h.kept[0], h.at[0], h.n = w.base[site], true, -1, 1
	for i, s := range w.log[:w.logged] {
		if int(s.site) == site {
			h.text[h.n], h.at[h.n], h.n = s.text, i, h.n+1
		}
	}
	h.kept[h.n-1] = true
	for i := 1; i < h.n-1; i++ {
		from, to := cpus.Seq(h.at[i]+2), cpus.Seq(h.at[i+1]+2)
		h.kept[i] = w.settled[site].Seq() == from
		for c := range w.m.Roles {
			h.kept[i] = h.kept[i] || from <= w.cpu[c].Synced && w.cpu[c].Synced < to
		}
	}
	return h
}

// spare finds versions [from, to) of a history that can be removed. No window begins with
// one of them: a window that has any of them has the version before them and all that follow.
// A fetch gives the same texts without them:
//
//   - where a fetch is one version, or takes its grains from any version, only the set of
//     texts counts: a text that comes again is spare;
//   - coherent, the set of subsequences that are no longer than there are grains counts: a
//     version is spare if all later texts come so many times, one run behind the other
//     (Simon, "Piecewise testable events", LNCS 33, 1975). Across a border of quadwords the
//     tail may be that of the version before, whose text must then be among the later ones;
//   - atomic across a border of quadwords, the set of neighbouring versions counts: if the
//     history returns to a text and makes the same steps again later, the versions in
//     between are spare (circle).
func (m *Model) spare(h *history, site int) (from, to int) {
	grains := m.grains[site]
	for i := 1; i < h.n-1; i++ {
		switch {
		case h.kept[i]:
		case grains == 1 || !m.Code.Fetch.InOrder():
			if slices.Contains(h.text[i+1:h.n], h.text[i]) {
				return i, i + 1
			}
		case m.Code.Fetch == cpus.Coherent:
			if slices.Contains(h.text[i:h.n], h.text[i-1]) && runs(h.text[i:h.n]) >= grains {
				return i, i + 1
			}
		default:
			if end := h.circle(i); end > 0 {
				return i, end
			}
		}
	}
	return 0, 0
}

// runs counts how often one behind the other all texts come, the first among them, in
// what follows it.
func runs(texts []uint8) (n int) {
	var all, seen uint
	for _, t := range texts {
		all |= 1 << t
	}
	for _, t := range texts[1:] {
		if seen |= 1 << t; seen == all {
			n, seen = n+1, 0
		}
	}
	return n
}

// circle is the end of a way from the text before the i-th back to it, none of it kept,
// whose every step is made again behind it; 0 where there is none.
func (h *history) circle(i int) int {
	for end := i + 1; end < h.n && !h.kept[end-1]; end++ {
		if h.text[end-1] != h.text[i-1] {
			continue
		}
		again := true
		for k := i - 1; k < end-1; k++ {
			found := h.text[k] == h.text[k+1]
			for j := end - 1; j < h.n-1; j++ {
				found = found || h.text[j] == h.text[k] && h.text[j+1] == h.text[k+1]
			}
			again = again && found
		}
		if again {
			return end
		}
	}
	return 0
}
