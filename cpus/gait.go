// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"sync/atomic"
	"time"
)

// Gait is how much the CPUs' own tasks do. Interrupts are answered and leases are given
// in every gait.
type Gait int32

// The gaits. While no patcher works and no reader watches or counts, calls only take the host's
// cores from others.
const (
	Running Gait = iota // all the time: evidence under true parallelism
	Paced               // a quantum in each pace
	Resting             // until something waits for them
)

// pace is how long a CPU that is paced waits between two quanta: long beside the microseconds that
// one takes, and short for a human reader.
const pace = time.Millisecond

// aftermath is how many steps a CPU makes on its own once it may rest, so that it can
// break what the last update promised.
const aftermath = 1024

// SetGait says how much the CPUs do from now on: a machine that was built is Running.
func (m *Machine) SetGait(g Gait) {
	m.gait.Store(int32(g))
	for _, r := range m.runners {
		r.ring()
	}
}

// pause is the goroutine's own state where the CPU does not run all the time: how far it
// is on the way to its next stop.
type pause struct {
	since int         // steps since the CPU last ran all the time
	still atomic.Bool // the goroutine waits; for tests
}

// mayStop counts the steps of a quantum, and tells whether the CPU may stop behind it.
func (r *runner) mayStop(steps int) (g Gait, stop bool) {
	if g = Gait(r.m.gait.Load()); g == Running {
		r.pause.since = 0
		return g, false
	}
	r.pause.since += steps
	return g, r.pause.since > aftermath && r.cpu.BetweenCalls()
}

// stop waits as the gait says, or until a patcher or a clock waits for the CPU. The CPU may still
// fetch the same versions afterwards: it has not synchronised.
func (r *runner) stop(g Gait) {
	defer r.asleep.Store(false)
	r.raiseFlag()
	if !r.lastLook() || Gait(r.m.gait.Load()) != g {
		return
	}
	r.pause.still.Store(true)
	defer r.pause.still.Store(false)
	if g == Resting {
		<-r.bell
		return
	}
	next := time.NewTimer(pace)
	defer next.Stop()
	select {
	case <-r.bell:
	case <-next.C:
	}
}
