// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
)

// unit is a kind of thing that a patcher does, and that takes the same each time.
type unit uint8

const (
	unitVerify unit = iota
	unitPublish
	unitStore
	unitLiteral
	unitFence
	unitReference
	unitRound // one to all others
	unitLazy  // one that leaves out CPUs in user space
	unitStop  // stop_machine
	numUnits
)

// units is how many there are of each kind.
type units [numUnits]float64

func (u units) at(prices *units) (ns float64) {
	for k, n := range u {
		ns += n * prices[k]
	}
	return ns
}

// Estimate is the time of an update as a sum of numbers of things times their costs, so that other
// costs need no second execution. A patcher's steps are linear in the costs; a round has a mean in
// closed form (calibration.Costs.RoundTo); and traps come as often as CPUs call exposed sites.
// Where handlers share one counter, the waiting for its line is counted in visits, and each visit
// costs a transfer of the line. With other costs there are as many visits. The estimate leaves out that a
// target in a trap takes a round's interrupt later, that the patcher waits for a handler,
// migrations and preemption, and that fewer CPUs may wait for a faster line. TestEstimate holds it
// against the engine.
type Estimate struct {
	update, exposure units                // of the whole update; of one patch, on average
	all, fewer       []calibration.Target // of rounds, and of rounds that leave out CPUs in user space
	stopping         []calibration.Target // of stop_machine, which masks hold back everywhere
	shared           bool                 // counter of handlers
	online, busy     float64
	taken            float64 // interrupts
	caughtUp         float64
	traps            float64
	comparisons      float64 // of a trap
	references       float64 // of a trap
	queued           visits  // for the line that all handlers share
	hazard           float64 // traps of a CPU that has time, in a nanosecond of exposure and a call a second
}

// visits are those of the line of a shared counter that somebody waited for, on average: in
// a trap, and by the patcher in the update and while a site held its breakpoint.
type visits struct{ trap, update, exposure float64 }

// visit is what one takes.
func visit(c *calibration.Costs) float64 { return c.LineTransfer + c.Reference }

// NewEstimate takes an update apart that was executed with a configuration.
func NewEstimate(cfg *Config, parts []Part, out *Outcome) *Estimate {
	e := &Estimate{caughtUp: float64(out.CaughtUp), shared: cfg.Refs == int3.SharedRef}
	if cfg.Refs == int3.PerCPU {
		e.references = 2
	}
	home := cpus.Housekeeper(cfg.Roles)
	for i, role := range cfg.Roles {
		if role == cpus.Offline {
			continue
		}
		e.online++
		if role == cpus.Busy || role == cpus.IrqsOff {
			e.busy++
		}
		if i == home {
			continue
		}
		t := target(role, !cfg.Code.Traits.MaskedRounds)
		e.all, e.stopping = append(e.all, t), append(e.stopping, target(role, true))
		if role != cpus.Isolated {
			e.fewer = append(e.fewer, t)
		}
	}
	records := 0.0
	for _, p := range parts {
		exposed := e.walk(p)
		if p.Cause == cpus.Sync {
			records += float64(len(p.Patches))
			for k := range e.exposure {
				e.exposure[k] += exposed[k]
			}
		}
	}
	for k := range e.exposure {
		e.exposure[k] /= max(records, 1)
	}
	e.fit(cfg.Costs, out)
	return e
}

// target is how a CPU of a role takes interrupts.
func target(role cpus.Role, maskable bool) calibration.Target {
	switch {
	case role == cpus.Idle:
		return calibration.Asleep
	case role == cpus.IrqsOff && maskable:
		return calibration.Masking
	}
	return calibration.Prompt
}

// walk adds what a part's plan does, and says how long its patches hold breakpoints,
// all together.
func (e *Estimate) walk(p Part) (exposed units) {
	held := make([]bool, len(p.Patches))
	for _, st := range p.Plan {
		n := float64(st.To - st.From)
		switch st.Op {
		case poke.Verify:
			e.update[unitVerify] += n
		case poke.Publish:
			e.update[unitPublish] += n
		case poke.Unpublish:
			e.update[unitReference]++
		case poke.Fence:
			e.update[unitFence]++
		case poke.Sync:
			e.update[unitFence]++
			if st.Lazy {
				e.update[unitLazy]++
			} else {
				e.update[unitRound]++
			}
		case poke.StopMachine:
			e.update[unitStop]++
		case poke.Write:
			e.write(st, held, &exposed)
		}
	}
	return exposed
}

// write is the stores of one step, one patch after the other.
func (e *Estimate) write(st poke.Step, held []bool, exposed *units) {
	kind := unitStore
	if st.Part == poke.Literal || st.Part == poke.LiteralLow || st.Part == poke.LiteralHigh {
		kind = unitLiteral
	}
	for i := st.From; i < st.To; i++ {
		begins := st.Part == poke.Breakpoint && !held[i]
		ends := held[i] && (st.Part == poke.Head || st.Part == poke.Word || st.Part == poke.Bytes && st.Span.From == 0)
		for k := range exposed {
			switch {
			case begins:
				exposed[k] -= e.update[k]
			case ends:
				exposed[k] += e.update[k]
			}
		}
		if begins || ends {
			held[i] = begins
		}
		e.update[kind]++
	}
}

// fit takes from an outcome the numbers that only an execution gives: interrupts, traps, and
// comparisons of a trap.
func (e *Estimate) fit(c *calibration.Costs, out *Outcome) {
	stolen := 0.0
	for i := range out.Stolen {
		stolen += float64(out.Stolen[i])
		e.traps += float64(out.Tallies[i][cpus.Trap])
		for _, n := range out.Counts.Taken[i] {
			e.taken += float64(n)
		}
	}
	if e.traps == 0 || e.busy == 0 {
		return
	}
	e.comparisons = float64(out.Compared) / e.traps
	if v := visit(c); e.shared && v > 0 {
		update, exposure := e.times(c)
		e.queued = visits{
			trap:     max(0, (stolen-e.taken*c.Handler-e.caughtUp*c.CatchUp)/e.traps-e.trap(c)) / v,
			update:   max(0, float64(out.Update)-update) / v,
			exposure: max(0, float64(out.Exposure)-exposure) / v,
		}
	}
	update, exposure := e.times(c)
	busy := 1 - e.traps*e.trap(c)/(e.busy*update)
	if e.shared {
		busy = max(busy, leastBusy)
	}
	if busy > 0 && exposure*c.Calls > 0 {
		e.hazard = e.traps / (e.busy * exposure * c.Calls * busy)
	}
}

// leastBusy is the share of its time that a CPU has left for calls when all of them wait for a
// line: almost none, and never negative.
const leastBusy = 1e-3

// trap is what one trap takes.
func (e *Estimate) trap(c *calibration.Costs) float64 {
	return c.TrapEntry + c.TrapExit + e.references*c.Reference + e.comparisons*c.Comparison + e.queued.trap*visit(c)
}

// prices are what each kind takes.
func (e *Estimate) prices(c *calibration.Costs) *units {
	p := units{unitVerify: c.Verify, unitPublish: c.Publish, unitStore: c.Store, unitLiteral: c.StoreLiteral,
		unitFence: c.Fence, unitReference: c.Reference}
	if e.update[unitRound] > 0 {
		p[unitRound] = c.RoundTo(e.all)
	}
	if e.update[unitStop] > 0 {
		p[unitStop] = c.RoundTo(e.stopping) + c.StopWake
	}
	if e.update[unitLazy] > 0 {
		p[unitLazy] = c.RoundTo(e.fewer)
	}
	return &p
}

func (e *Estimate) times(c *calibration.Costs) (update, exposure float64) {
	p := e.prices(c)
	return e.update.at(p) + e.queued.update*visit(c), e.exposure.at(p) + e.queued.exposure*visit(c)
}

// Figures are the time of the update, the mean time that a patched site holds a
// breakpoint, and the mean time that is stolen from a CPU, in nanoseconds.
func (e *Estimate) Figures(c *calibration.Costs) (update, exposure, stolen float64) {
	update, exposure = e.times(c)
	trap, traps := e.trap(c), 0.0
	if update > 0 {
		// Of the time of the update a CPU has so much for calls as traps leave it.
		hits := exposure * e.hazard * c.Calls
		traps = e.busy * hits / (1 + hits*trap/update)
	}
	stolen = (e.taken*c.Handler + e.caughtUp*c.CatchUp + traps*trap) / max(e.online, 1)
	return update, exposure, stolen
}
