// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// world is one state of a model, in plain words, together with the action under way. It implements
// cpus.Shared and poke.Ground.
type world struct {
	m      *Model
	cpu    [MaxCPUs]cpus.CPU
	parked [MaxCPUs]cpus.Task
	under  [MaxCPUs]cpus.CPU // what an NMI has interrupted
	state
	patcher [MaxPatchers]poke.Patcher

	// Not state: room, and the results of the action under way.
	pad     *cpus.Scratchpad
	actor   int      // the patcher that acts
	was     cpus.CPU // the CPU that acts, before its step
	found   *cpus.Violation
	event   cpus.Event
	waits   bool // the patcher's step changed nothing
	notes        // what the actions since they were last cleared have read and written
	chose   bool // the patcher's step chose an update
	full    bool // a store found no room in the log
	reached reached
	// observe, where set, is told of every action once it has happened.
	observe func(action)
	// shared is what CPUs make their accesses through: the world, but for tests of CPUs
	// that others are unkind to.
	shared cpus.Shared
}

// state is what CPUs and patchers share.
type state struct {
	base   [MaxSites]uint8      // the text that every CPU has at least seen, as an index of texts
	log    [maxStores + 1]store // stores since, the oldest first; the i-th is at position i+2
	logged int

	settled [MaxSites]cpus.Promise
	begun   [MaxSites]uint8 // the update begun last, as an index of changes
	literal [MaxSites]uint64
	ops     cpus.OpsStates

	published uint8 // number of the batch, 0 for none
	refs      [MaxCPUs]int8
	box       [MaxCPUs][MaxPatchers]request // in order of arrival
	stopped   [MaxCPUs]bool
	space     [MaxCPUs]cpus.Space

	sat      [MaxPatchers]seat
	left     [MaxPatchers]int8 // answers that a sender waits for
	arrived  int8
	arriving int8
	stopping int8 // the patcher that has the machine stopped, plus 1
	poke.Commons
}

// store is one store to a site, and the text that it left.
type store struct{ site, text uint8 }

// request is one interrupt in a box: 1 + sender, and above that which of
// requestCauses it is for, in two bits.
type request uint8

// requestCauses are the causes of what patchers send here.
var requestCauses = [4]cpus.Cause{cpus.Sync, cpus.Stop, cpus.Quiesce, cpus.QuiesceCPUs}

func requestOf(sender int, c cpus.Cause) request {
	return request(1+sender) | request(slices.Index(requestCauses[:], c))<<3
}
func (r request) sender() int       { return int(r&7) - 1 }
func (r request) cause() cpus.Cause { return requestCauses[r>>3] }

// seat is what a patcher does to the CPU that it sits on.
type seat uint8

const (
	waiting seat = iota // has not begun, or is between two updates
	sitting             // the CPU's own task waits
	done
)

// newWorld is the model before anything has happened.
func newWorld(m *Model) *world {
	w := &world{m: m, pad: cpus.NewScratchpad()}
	w.shared = w
	for i, r := range m.Roles {
		w.cpu[i] = cpus.CPU{ID: int32(i), Role: r, Synced: 1}
		w.under[i] = cpus.CPU{ID: int32(i), Role: r}
		if r == cpus.Offline { // busy, once it is online
			w.cpu[i].Role, w.under[i].Role = cpus.Busy, cpus.Busy
			w.cpu[i].PowerOff()
		}
	}
	for i, p := range m.Programs {
		w.patcher[i] = p.patcher(m.Code)
	}
	for site, t := range m.Initial {
		w.settled[site] = cpus.PromiseOf(0, 1)
		w.base[site] = m.textIndex(site, t)
		w.literal[site] = m.Literals[site]
	}
	w.ops = m.attached
	return w
}

func (m *Model) textIndex(site int, t isa.Text) uint8 {
	for i, u := range m.texts[site] {
		if u == t {
			return uint8(i)
		}
	}
	panic("a text that no store leads to")
}

// violate records what broke, if anything did; the first counts.
func (w *world) violate(v *cpus.Violation) {
	if w.found == nil {
		w.found = v
	}
}

// leased tells whether a patcher sits on the CPU.
func (w *world) leased(cpu int) bool {
	for i := range w.m.Programs {
		if w.m.homes[i] == cpu && w.sat[i] == sitting {
			return true
		}
	}
	return false
}

// masked tells whether a patcher on the CPU holds back its interrupts.
func (w *world) masked(cpu int) bool {
	for i := range w.m.Programs {
		if w.m.homes[i] == cpu && w.sat[i] == sitting && w.patcher[i].Masks() {
			return true
		}
	}
	return false
}

// newest is the last text of a site, as an index.
func (w *world) newest(site int) uint8 {
	for i := w.logged - 1; i >= 0; i-- {
		if int(w.log[i].site) == site {
			return w.log[i].text
		}
	}
	return w.base[site]
}
