// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// Config configures a machine.
type Config struct {
	// Code is where the sites are, and what CPUs do there.
	Code *cpus.Code
	// Initial is what stands at a site at first.
	Initial func(site int) isa.Text
	// Roles is a role for each CPU. Busy, isolated and offline ones can be had.
	Roles []cpus.Role
	// Slots is what the protocol's vector has room for, 0 for as many as there are
	// patches, and Filling how patches get into it.
	Slots   int
	Filling poke.Filling
	// Seed fixes which sites CPUs pick; when they do is the machine's.
	Seed uint64
	// Broken says that plans may lead calls astray: what lies between sites is filled, so
	// that such calls come back and are counted.
	Broken bool
	// Borderless lets a round be over when membarrier is (see live.Config).
	Borderless bool
	// Even lets threads call all sites alike; otherwise half of their calls go to those that
	// are being changed.
	Even bool

	blocks, text *os.File // of a child, which its parent reads when it is dead
}

// ErrNone says that this machine has none, and why.
var ErrNone = errors.New("no hardware engine here")

// Fits tells whether a machine can have CPUs of these roles, of so many that the process
// may use.
func Fits(roles []cpus.Role, allowed int) error {
	online := 0
	for _, r := range roles {
		switch r {
		case cpus.Idle:
			return errors.New("an idle CPU: nothing interrupts a thread that sleeps, so that there is nothing to count; " +
				"want busy and isolated ones")
		case cpus.IrqsOff:
			return errors.New("a CPU with interrupts off: a thread cannot mask them; want busy and isolated ones")
		case cpus.Offline:
		default:
			online++
		}
	}
	switch {
	case allowed < 2:
		return fmt.Errorf("%w: this process may use one CPU, and wants two: one that patches, one that calls", ErrNone)
	case online > allowed:
		return fmt.Errorf("it can use %d CPUs here, not %d", allowed, online)
	case online < 2:
		return fmt.Errorf("%d CPU: want two or more, one that patches and one that calls", online)
	}
	return nil
}

// Expressible tells whether threads do what a path says.
func Expressible(path cpus.Path) error {
	want := map[cpus.Section][]cpus.Variant{
		cpus.AtSite: {cpus.SiteCalls}, cpus.InHandler: {cpus.HandlerActs}, cpus.OnMiss: {cpus.MissForgives, cpus.MissFatal},
		cpus.OnEntry: nil, cpus.OnExit: nil, cpus.OnNMI: nil, cpus.OnUp: nil, cpus.OnDown: nil,
	}
	for section, variants := range want {
		has := path.Program(section)
		ok := has == cpus.Program{}
		for _, v := range variants {
			with := path.With(v)
			ok = ok || has == with.Program(section)
		}
		if !ok {
			return fmt.Errorf("path %s: %s: the threads' own handler does otherwise, and cannot be told", section, has)
		}
	}
	return nil
}

// unforgiving tells whether a breakpoint without an entry is the end in a path.
func unforgiving(path cpus.Path) bool {
	fatal := path.With(cpus.MissFatal)
	return path.Program(cpus.OnMiss) == fatal.Program(cpus.OnMiss)
}

// Lazy tells whether a plan has rounds that leave CPUs in user space out, and why that
// cannot be had.
func Lazy(plan []poke.Step) error {
	for _, st := range plan {
		if st.Lazy {
			return fmt.Errorf("%s: it leaves out CPUs in user space; all threads here are in user space, "+
				"and membarrier reaches all that run",
				st.Name())
		}
	}
	return nil
}

// Outcome is what an update did.
type Outcome struct {
	Elapsed  time.Duration // from the first verification to the last answer
	Stores   int           // that were made to text
	Counts   cpus.Counts
	Tallies  []cpus.Tally    // by CPU, until every busy one has gone on for a while
	Took     []time.Duration // of each round, from the request to the last answer
	Waited   *time.Duration  // in which the patcher could have run and its CPU had others; nil where it is not known
	Compared uint64          // comparisons of all look-ups
	Called   uint64          // calls that were begun while the plan was executed
	Callers  int             // CPUs that called meanwhile
	Pace     time.Duration   // of a thousand calls of one undisturbed CPU, before the update
	Total    uint64          // properties violated
	Died     bool            // the machine's process has died, and only Findings are known
	Findings []cpus.Violation
}
