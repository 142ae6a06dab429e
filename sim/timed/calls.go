// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/textpoke/textpoke/cpus"
)

// Calls of traced functions.
//
// Each busy CPU makes calls at random, Costs.Calls a second of the time that it has to itself, each
// of a site that is drawn from Zipf's law: a Poisson process on the CPU's own clock, which stands
// still while it handles traps and interrupts, whose events are marked with sites. Almost all of
// these calls, millions a second, meet a site between updates: they read its only version, take
// none of the time that is modelled here, and are only counted. Calls of hot sites are events. A
// site is hot if its batch is published, if it holds a breakpoint or calls an ops that may not be
// called, or if a store reached it less than Costs.FetchLag ago.
//
// That this thinning is exact follows from three properties of Poisson processes
// (Kingman, Poisson Processes, 1993, chapters 2 and 5; Lewis and Shedler, Naval
// Research Logistics Quarterly 26, 1979):
//   - Marks are independent of times and of each other, so that calls of hot sites
//     and calls of all others are two independent Poisson processes, of rates in
//     the ratio of the sites' weights. The others are only counted: their number,
//     given how long CPUs ran while so much weight was cold, is drawn once in the end.
//   - The processes of all CPUs together are one, each of whose events belongs to any
//     CPU alike. An event of a CPU that is busy otherwise did not happen: its clock
//     stood still.
//   - The processes have no memory: when more sites become hot, the next call is
//     drawn anew from there. When fewer are, calls that are drawn at the higher
//     rate are kept with the ratio's probability.
//
// TestThinning holds this against a machine that executes every call.
type calls struct {
	rng    *rand.Rand
	rate   float64   // calls of one CPU in a nanosecond
	weight []float64 // of each site; all together 1
	law    law       // of all sites
	parks  float64   // share of calls that are preempted inside a tracer

	batch    weighted      // the sites that are published
	together *weighted     // those of them whose calls are drawn for all CPUs together: all, or what a stretch leaves
	recent   []recentStore // to other sites, the oldest first
	oldest   int           // of recent, where it begins
	heat     []heat        // by site
	hot      float64       // weight of all sites that are hot
	traced   float64       // weight of the cold sites that call a tracer

	bound   float64 // weight that the next call was drawn for
	next    float64 // when it is
	pending int32   // number of its event, 0 for none

	busy      []int32 // CPUs that make calls
	idle      []bool  // by CPU: has no time for calls now; an array of its own, read for every call that is drawn
	available int     // busy CPUs that have time for calls now
	over      bool    // no CPU makes calls any more, and the sums below do not change
	since     Nanos   // when the sums below were last brought up to date
	coldTime  float64 // weight of cold sites x CPUs available, over time
	coldTrace float64 // of these, sites that call a tracer
}

// heat is why a site is hot, and the outcome of its calls.
type heat struct {
	recent    int32 // its last store among recent, plus 1; 0 for none
	published bool
	meets     bool // every call meets a breakpoint, or an ops that may not be called
	enabled   bool
}

func (h heat) hot() bool { return h.published || h.recent != 0 }

// recentStore is a store to a site that was not published; upTo is the weight of
// all up to it.
type recentStore struct {
	site int32
	at   Nanos
	upTo float64
}

// newCalls spreads calls over n sites by Zipf's law. Hot sites are neighbours of cold
// ones, as in a real table.
func newCalls(n int, rate, skew float64, rng *rand.Rand) *calls {
	c := &calls{rng: rng, rate: rate / 1e9, weight: make([]float64, n), heat: make([]heat, n)}
	c.together = &c.batch
	stride := int(cpus.Stride(uint64(n)))
	sum := 0.0
	for rank := range n {
		w := math.Pow(float64(rank+1), -skew)
		c.weight[rank*stride%n] = w
		sum += w
	}
	for i := range c.weight {
		c.weight[i] /= sum
		c.law.add(c.weight[i])
	}
	return c
}

// anySite draws a site from the whole law.
func (c *calls) anySite() int32 {
	return int32(c.law.at(c.rng.Float64() * c.law.total()))
}

// passed brings the sums up to date; before anything about them changes.
func (c *calls) passed(now Nanos) {
	if !c.over {
		t := float64(now-c.since) * float64(c.available)
		c.coldTime += t * (1 - c.hot)
		c.coldTrace += t * c.traced
	}
	c.since = now
}

// open begins to count anew, close ends all calls.
func (c *calls) open(now Nanos) {
	c.over, c.since = false, now
	c.coldTime, c.coldTrace = 0, 0
}

func (c *calls) close(now Nanos) {
	c.publish(now, nil)
	c.cool(now, now)
	c.passed(now)
	c.over, c.pending = true, 0
}

// change changes a site's heat by f.
func (c *calls) change(now Nanos, site int32, f func(h *heat)) {
	h := &c.heat[site]
	before := *h
	f(h)
	if *h == before {
		return
	}
	c.passed(now)
	w := c.weight[site]
	if !before.hot() && before.enabled {
		c.traced -= w
	}
	if !h.hot() && h.enabled {
		c.traced += w
	}
	if h.hot() && !before.hot() {
		c.hot += w
	}
	if !h.hot() && before.hot() {
		c.hot -= w
	}
}

// publish makes the sites of a batch hot in place of those of the last one, which
// stay so for a while as recent ones.
func (c *calls) publish(now Nanos, sites []int32) {
	for _, s := range c.batch.sites {
		c.change(now, s, func(h *heat) { h.published = false })
		c.remember(now, s)
	}
	c.batch.clear()
	for _, s := range sites {
		c.change(now, s, func(h *heat) { h.published = true })
		c.batch.add(s, c.weight[s])
	}
}

// stored notes a store: the site is hot for a while, and holds what it holds.
func (c *calls) stored(now Nanos, site int32, meets, enabled bool) {
	c.change(now, site, func(h *heat) { h.meets, h.enabled = meets, enabled })
	if !c.heat[site].published {
		c.remember(now, site)
	}
}

// remember makes a site hot that is in no batch.
func (c *calls) remember(now Nanos, site int32) {
	upTo := 0.0
	if c.oldest == len(c.recent) {
		c.recent, c.oldest = c.recent[:0], 0
	} else {
		upTo = c.recent[len(c.recent)-1].upTo
	}
	c.recent = append(c.recent, recentStore{site, now, upTo + c.weight[site]})
	c.change(now, site, func(h *heat) { h.recent = int32(len(c.recent)) })
}

// cool forgets stores up to a time, that every CPU sees by now, unless they left
// something that every call meets.
func (c *calls) cool(now, seen Nanos) {
	for c.oldest < len(c.recent) {
		r := c.recent[c.oldest]
		if r.at > seen || c.heat[r.site].meets {
			return
		}
		c.oldest++
		if int(c.heat[r.site].recent) == c.oldest {
			c.change(now, r.site, func(h *heat) { h.recent = 0 })
		}
	}
}

// recentWeight is the weight of the recent stores; a site with several of them counts
// several times.
func (c *calls) recentWeight() float64 {
	if c.oldest == len(c.recent) {
		return 0
	}
	if c.oldest == 0 {
		return c.recent[len(c.recent)-1].upTo
	}
	return c.recent[len(c.recent)-1].upTo - c.recent[c.oldest-1].upTo
}

// after draws the time of the next call that may be an event, when calls of so much weight may be;
// false when there is none. The machine's clock has whole nanoseconds, the process has not: the
// fraction is kept for the call after it.
func (c *calls) after(now float64, bound float64) (at Nanos, ok bool) {
	c.bound = bound
	rate := bound * c.rate * float64(len(c.busy))
	if rate <= 0 {
		return 0, false
	}
	c.next = now + c.rng.ExpFloat64()/rate
	return Nanos(c.next), c.next < math.MaxInt64/2
}

// draw chooses a call's site, and whether it will be preempted; false where the call did not
// happen.
func (c *calls) draw() (site int32, park, ok bool) {
	x := c.rng.Float64() * c.bound
	if b := c.together.total(); x < b {
		return c.together.at(x), c.parked(), true
	} else if x -= b; x < c.recentWeight() {
		if c.oldest > 0 {
			x += c.recent[c.oldest-1].upTo
		}
		live := c.recent[c.oldest:]
		i := sort.Search(len(live), func(i int) bool { return live[i].upTo > x })
		i = min(i, len(live)-1) + c.oldest
		r := c.recent[i]
		h := c.heat[r.site]
		return r.site, c.parked(), !h.published && int(h.recent) == i+1
	} else if x -= c.recentWeight(); x < c.parks {
		site = c.anySite()
		return site, true, !c.heat[site].hot()
	}
	return 0, false, false
}

func (c *calls) parked() bool { return c.parks > 0 && c.rng.Float64() < c.parks }

// cold draws how many calls of cold sites there were between open and close, and
// how many of them called a tracer.
func (c *calls) cold(src rand.Source) (traced, untraced uint64) {
	events := c.rate * (1 - c.parks)
	mean, with := c.coldTime*events, c.coldTrace*events
	return poisson(with, src), poisson(mean-with, src)
}

// poisson draws from Poisson's law: few events by the times between them, many by the rejection
// PTRS of W. Hörmann, "The transformed rejection method for generating Poisson random variables",
// Insurance: Mathematics and Economics 12, 1993.
func poisson(mean float64, src rand.Source) uint64 {
	if mean <= 0 {
		return 0
	}
	rng := rand.New(src)
	if mean < 10 {
		n := uint64(0)
		for t := rng.ExpFloat64(); t < mean; t += rng.ExpFloat64() {
			n++
		}
		return n
	}
	b := 0.931 + 2.53*math.Sqrt(mean)
	a := -0.059 + 0.02483*b
	alpha, inside := 1.1239+1.1328/(b-3.4), 0.9277-3.6224/(b-2)
	for {
		u, v := rng.Float64()-0.5, rng.Float64()
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + mean + 0.43)
		if us >= 0.07 && v <= inside {
			return uint64(k)
		}
		if k < 0 || us < 0.013 && v > us {
			continue
		}
		if lg, _ := math.Lgamma(k + 1); math.Log(v*alpha/(a/(us*us)+b)) <= k*math.Log(mean)-mean-lg {
			return uint64(k)
		}
	}
}

// law is weights to draw from.
type law struct {
	upTo  []float64 // weight of all up to this one
	guide []int32   // by part of the whole weight: the first that reaches up to there; empty until it is needed
}

// clear forgets all weights, add puts one behind the others.
func (l *law) clear() { l.upTo, l.guide = l.upTo[:0], l.guide[:0] }

func (l *law) add(weight float64) {
	l.upTo, l.guide = append(l.upTo, l.total()+weight), l.guide[:0]
}

// total is the sum of the weights.
func (l *law) total() float64 {
	if len(l.upTo) == 0 {
		return 0
	}
	return l.upTo[len(l.upTo)-1]
}

// at is the first whose sum reaches x, or the last; there must be one. A table of as
// many parts of the whole says where to look, so that two comparisons are enough on
// average (Chen and Asau, "On generating random variates from an empirical
// distribution", AIIE Transactions 6, 1974).
func (l *law) at(x float64) int {
	n := len(l.upTo)
	part := l.total() / float64(n)
	if len(l.guide) == 0 {
		i := 0
		for k := range n {
			for i < n-1 && l.upTo[i] < float64(k)*part {
				i++
			}
			l.guide = append(l.guide, int32(i))
		}
	}
	i := int(l.guide[max(min(int(x/part), n-1), 0)])
	for i > 0 && l.upTo[i-1] >= x { // where rounding has gone beyond it
		i--
	}
	for i < n-1 && l.upTo[i] < x {
		i++
	}
	return i
}

// weighted is sites to draw from.
type weighted struct {
	sites []int32
	law
}

// clear forgets all sites, add puts one behind the others; at is the one whose sum reaches x.
func (w *weighted) clear() {
	w.sites = w.sites[:0]
	w.law.clear()
}

func (w *weighted) add(site int32, weight float64) {
	w.sites = append(w.sites, site)
	w.law.add(weight)
}

func (w *weighted) at(x float64) int32 { return w.sites[w.law.at(x)] }
