// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/bits"
	"strings"

	"github.com/textpoke/textpoke/cpus"
)

// A second opinion on the endless workload: the breakpoint protocol on x86_64 under weak
// fetch, written down by hand. It shares nothing with the checker: what a CPU may fetch is
// a set of texts and no log, a round is two bits, and there are no reductions. Ops, and
// who waits for CPUs that are on their way to them, are left out.

// The texts of a site: what its head is, and above that whether its tail is the call's.
const (
	nopHead  = 0
	callHead = 1
	trapHead = 2
	callTail = 4

	maxPlaces = 2 // sites, and CPUs
)

// bytesOf is a text as text_poke stores it.
var bytesOf = map[uint8]string{
	nopHead: "0f 1f", callHead: "e8 1f", trapHead: "cc 1f", nopHead | callTail: "0f xx", callHead | callTail: "e8 xx",
	trapHead | callTail: "cc xx",
}

// little is a CPU.
type little struct {
	at    string // "out": between two instructions, "again": as out, at its site; or a step of the handler
	site  int
	found bool             // by the handler
	sees  [maxPlaces]uint8 // by site: the texts that it may fetch, one bit each
	ref   int8
	asked bool // by a round
}

// littleMachine is a state of the whole.
type littleMachine struct {
	cpu       [maxPlaces]little // the patcher sits on the first
	text      [maxPlaces]uint8
	promised  [maxPlaces]uint8 // by site: the texts that its promise allows, one bit each; 0 for none
	published uint8            // sites, one bit each
	set       uint8            // the update's sites, 0 between two updates
	back      bool
	at, done  int // the step, and how many sites of it
	asked     bool
}

// protocolSteps are the kernel's, in order (smp_text_poke_batch_finish,
// arch/x86/kernel/alternative.c, Linux 6.16); "each" is one access a site.
const protocolSteps = "each verify;publish;each breakpoint;round 1;each tail;round 2;each head;round " +
	"3;unpublish;drain;clear;each promise"

// mutated are the steps with a defect.
var mutated = map[string]string{
	"":            protocolSteps,
	"drop-sync-1": strings.Replace(protocolSteps, "round 1;", "", 1),
	"drop-sync-2": strings.Replace(protocolSteps, "round 2;", "", 1),
	"drop-sync-3": strings.Replace(protocolSteps, "round 3;", "", 1),
	"late-publish": strings.NewReplacer("publish;each breakpoint;round 1;", "each breakpoint;round 1;publish;").
		Replace(protocolSteps),
	"early-release": strings.NewReplacer("each head;round 3;unpublish;drain;clear;", "unpublish;drain;clear;each "+
		"head;round 3;").
		Replace(protocolSteps),
	"no-breakpoint": strings.NewReplacer("each breakpoint", "each word", "each tail;", "", "each head;", "").
		Replace(protocolSteps),
}

// littleSearch closes the states of n sites and CPUs.
type littleSearch struct {
	steps       []string
	sites, cpus int
	broken      map[string]bool
	seen        map[littleMachine]bool
	queue       []littleMachine
}

func newLittleSearch(mutation string, sites, cpus int) *littleSearch {
	s := &littleSearch{steps: strings.Split(mutated[mutation], ";"), sites: sites, cpus: cpus,
		broken: map[string]bool{}, seen: map[littleMachine]bool{}}
	var first littleMachine
	for i := range cpus {
		first.cpu[i].at = "out"
		for k := range sites {
			first.cpu[i].sees[k] = 1 << nopHead
		}
	}
	s.reach(first)
	for len(s.queue) > 0 && len(s.broken) == 0 {
		m := s.queue[0]
		s.queue = s.queue[1:]
		s.patch(m)
		for i := range cpus {
			if c := &m.cpu[i]; i == 0 && m.set != 0 && c.at == "out" {
				continue // the patcher has it
			}
			s.step(m, i)
		}
	}
	return s
}

func (s *littleSearch) reach(m littleMachine) {
	if !s.seen[m] {
		s.seen[m] = true
		s.queue = append(s.queue, m)
	}
}

// step lets a CPU go on: an interrupt comes first where it may.
func (s *littleSearch) step(m littleMachine, i int) {
	c := &m.cpu[i]
	switch at := c.at; {
	case c.asked && (at == "out" || at == "again"):
		c.asked = false
		s.fresh(&m, c)
		s.reach(m)
	case at == "out":
		for site := range s.sites {
			s.fetch(m, i, site)
		}
	case at == "again":
		s.fetch(m, i, c.site)
	case at == "trapped":
		if c.at = "missed"; c.ref > 0 {
			c.at = "searching"
			c.ref++
		}
		s.reach(m)
	case at == "searching":
		c.at, c.found = "leaving", m.published>>c.site&1 != 0
		s.reach(m)
	case at == "leaving":
		c.ref--
		if c.at = "missed"; c.found {
			c.at = "returning"
		}
		c.found = false
		s.reach(m)
	case at == "returning":
		s.fresh(&m, c)
		c.at, c.site = "out", 0
		s.reach(m)
	case at == "missed":
		if m.text[c.site]&trapHead != 0 {
			s.broken[string(cpus.UnhandledBreakpoint)] = true
		}
		c.at = "retrying"
		s.reach(m)
	case at == "retrying":
		s.fresh(&m, c)
		c.at = "again"
		s.reach(m)
	}
}

// fresh forgets what a CPU has fetched ahead.
func (s *littleSearch) fresh(m *littleMachine, c *little) {
	for site := range s.sites {
		c.sees[site] = 1 << m.text[site]
	}
}

// fetch takes every byte from any text in sight.
func (s *littleSearch) fetch(m littleMachine, i, site int) {
	c := &m.cpu[i]
	var heads, tails [3]bool
	for t := range uint8(8) {
		if c.sees[site]>>t&1 != 0 {
			heads[t&3], tails[t>>2] = true, true
		}
	}
	if heads[trapHead] {
		trapped := m
		trapped.cpu[i].at, trapped.cpu[i].site = "trapped", site
		s.reach(trapped)
	}
	for head := range uint8(2) {
		for tail := range uint8(2) {
			t := head | tail<<2
			switch {
			case !heads[head] || !tails[tail]:
			case c.sees[site]>>t&1 == 0, tails[0] && tails[1]: // the tail's own bytes mix as well
				s.broken[string(cpus.TornFetch)] = true
			case m.promised[site] != 0 && m.promised[site]>>t&1 == 0:
				s.broken[string(cpus.StaleAfterCompletion)] = true
			default:
				done := m
				done.cpu[i].at, done.cpu[i].site = "out", 0
				s.reach(done)
			}
		}
	}
}

// choose begins an update of any sites that are all enabled, or none of them.
func (s *littleSearch) choose(m littleMachine) {
	var calls uint8
	for site := range s.sites {
		calls |= m.text[site] & callHead << site
	}
	for set := uint8(1); set < 1<<s.sites; set++ {
		if on := calls & set; on == 0 || on == set {
			m.set, m.back = set, on == set
			s.reach(m)
		}
	}
}

// patch lets the patcher go on.
func (s *littleSearch) patch(m littleMachine) {
	if m.cpu[0].at != "out" {
		return
	}
	if m.set == 0 {
		s.choose(m)
		return
	}
	step, each := strings.CutPrefix(s.steps[m.at], "each ")
	if each {
		site := bits.TrailingZeros8(m.set >> m.done << m.done)
		s.access(&m, step, site)
		if m.done = site + 1; m.set>>m.done == 0 {
			s.next(&m)
		}
		s.reach(m)
		return
	}
	switch step {
	case "publish":
		m.published = m.set
		for i := range s.cpus {
			m.cpu[i].ref = 1
		}
	case "unpublish":
		for i := range s.cpus {
			m.cpu[i].ref--
		}
	case "drain":
		for i := range s.cpus {
			if m.cpu[i].ref != 0 {
				return
			}
		}
	case "clear":
		m.published = 0
	default: // a round
		if !s.round(&m) {
			return
		}
	}
	s.next(&m)
	s.reach(m)
}

// round tells whether a round is over, or asks for it.
func (s *littleSearch) round(m *littleMachine) bool {
	for i := 1; i < s.cpus; i++ {
		switch c := &m.cpu[i]; {
		case !m.asked:
			c.asked = true
		case c.asked:
			return false
		}
	}
	if m.asked = !m.asked; m.asked {
		s.fresh(m, &m.cpu[0])
		s.reach(*m)
	}
	return !m.asked
}

// access is one of the update's accesses to a site.
func (s *littleSearch) access(m *littleMachine, step string, site int) {
	want := uint8(callHead | callTail)
	if m.back {
		want = nopHead
	}
	t := &m.text[site]
	switch step {
	case "verify":
		m.promised[site] = 0
		return
	case "promise":
		m.promised[site] = 1 << *t
		return
	case "breakpoint":
		*t = *t&callTail | trapHead
	case "tail":
		*t = *t&3 | want&callTail
	case "head":
		*t = *t&callTail | want&3
	case "word":
		*t = want
	}
	for i := range s.cpus {
		m.cpu[i].sees[site] |= 1 << *t
	}
	if m.promised[site] != 0 {
		m.promised[site] |= 1 << *t
	}
}

func (s *littleSearch) next(m *littleMachine) {
	if m.at, m.done = m.at+1, 0; m.at == len(s.steps) {
		m.at, m.set, m.back = 0, 0, false
	}
}
