// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
)

// Config is what a Machine is built from.
type Config struct {
	Code   *cpus.Code
	Roles  []cpus.Role
	Costs  *calibration.Costs
	Lookup int3.Lookup
	Refs   int3.Refs
	// Called is how many of the code's sites CPUs call, the first ones; 0 for all.
	Called  int
	NopOps  uint64
	Initial func(site int) isa.Text
	Seed    uint64
	// Slots is what the vector has room for, 0 for as many as there are; Filling is
	// how batches get into it.
	Slots   int
	Filling poke.Filling
	// Migrate lets the patcher go on on another CPU between two steps, Preempt lets
	// tasks be preempted inside tracers, and the patcher between two batches.
	Migrate, Preempt bool
	// OutOfTurn is the share of visits of a reference count that all CPUs share
	// which break the order of waiting: 0 serves in turn, 1 draws lots.
	OutOfTurn float64
	// Calls says which calls are events; for tests of the thinning.
	Calls Thinning
	// Listener, where set, is told what happens, and when by the machine's clock.
	Listener *cpus.Listener
}

// Thinning is which calls of traced functions are executed.
type Thinning uint8

// The ways.
const (
	HotOnly   Thinning = iota // those that can meet something; the others are only counted
	Every                     // all: the slow twin of HotOnly
	EverySkip                 // all are drawn, and only the hot ones are executed
)

// Machine is CPUs and a patcher in virtual time. It implements cpus.Shared and
// poke.Ground.
type Machine struct {
	*int3.Table // the handlers' side
	listener    *cpus.Listener
	cfg         Config
	code        *cpus.Code
	costs       *calibration.Costs
	lag         Nanos

	now    Nanos
	queue  queue
	events uint64

	text   text
	cpus   []cpuState
	calls  *calls
	ledger ledger
	told   struct{ leftOut, caughtUp uint64 } // in outcomes so far
	ops    cpus.OpsTable
	called cpus.OpsStates // of ops
	rules  poke.Rules
	poke.Commons
	bringing bool // a CPU is being brought up, in a Lockstep
	expose   exposure
	patch    patcher
	stores   stores
	line     line // of the reference count that all CPUs share
	// comparisons is what the last lookup took, compared all of an update together.
	comparisons int32
	compared    uint64
	batch       uint32 // changes with the published batch, and when a handler may find it no more
	traps       []trap // by site, the last
	stretch     stretch

	jitter *rand.Rand  // delays and stays
	cold   rand.Source // for calls that are only counted
	steps  chooser
	pad    *cpus.Scratchpad
	padOf  int    // who worked on it last
	rounds uint64 // sent so far
	parked int    // tasks that wait for a CPU
	cpus.Reports
}

// exposure adds up how long sites hold breakpoints.
type exposure struct {
	ended Nanos // the ends minus the beginnings so far
	open  Nanos // how many have not ended
}

func (e *exposure) begin(now Nanos) { e.ended, e.open = e.ended-now, e.open+1 }
func (e *exposure) end(now Nanos)   { e.ended, e.open = e.ended+now, e.open-1 }

// until is how long all was together; sums may overflow on the way, not in the end.
func (e *exposure) until(now Nanos) Nanos { return e.ended + e.open*now }

// The streams of random numbers, so that what one part draws does not depend on
// what another one does.
const (
	streamCalls = iota + 1
	streamDelays
	streamSteps
	streamCold
	streamLine
	streamStores
)

// New builds a machine at rest, at time 0.
func New(cfg Config) (*Machine, error) {
	m, err := build(cfg)
	if err == nil {
		err = expressible(cfg.Code)
	}
	return m, err
}

// build is New for callers that make the CPUs' steps themselves.
func build(cfg Config) (*Machine, error) {
	n := len(cfg.Roles)
	if err := cfg.Code.For(cfg.Roles); err != nil {
		return nil, err
	}
	if cfg.Called == 0 {
		cfg.Called = len(cfg.Code.Sites)
	}
	var err error
	stream := func(s uint64) *rand.Rand { return rand.New(rand.NewPCG(cfg.Seed, s)) }
	m := &Machine{
		Table: int3.NewSerialTable(cfg.Refs, n), listener: cpus.Tee(cfg.Listener),
		cfg: cfg, code: cfg.Code, costs: cfg.Costs, lag: nanos(cfg.Costs.FetchLag),
		queue:   newQueue(),
		text:    newText(len(cfg.Code.Sites), cfg.Initial, cfg.NopOps),
		cpus:    make([]cpuState, n),
		rules:   poke.NewRules(cfg.Code, cfg.Slots),
		batch:   1,
		traps:   make([]trap, len(cfg.Code.Sites)),
		stretch: stretch{since: make([]Nanos, n)},
		jitter:  stream(streamDelays), cold: rand.NewPCG(cfg.Seed, streamCold),
		pad: cpus.NewScratchpad(),
	}
	if m.ops, m.called, err = cpus.NewOpsTable(cfg.NopOps); err != nil {
		return nil, err
	}
	m.line = line{waiting: make([]int32, n), owner: -1, rng: stream(streamLine)}
	m.stores = stores{m: m, rng: stream(streamStores)}
	m.calls = newCalls(cfg.Called, cfg.Costs.Calls, cfg.Costs.Skew, stream(streamCalls))
	if cfg.Preempt {
		m.calls.parks = min(cfg.Costs.Tracer/cfg.Costs.TickInterval, 1)
	}
	m.steps = chooser{rng: stream(streamSteps), calls: m.calls, site: anySite}
	for i, role := range cfg.Roles {
		m.cpus[i] = newCPU(i, role)
		calls := m.cpus[i].callsItself()
		if m.calls.idle = append(m.calls.idle, !calls); calls {
			m.calls.busy = append(m.calls.busy, int32(i))
			m.calls.available++
		}
	}
	for site := range cfg.Called {
		if w := m.calls.weight[site]; m.leads(site) == cpus.CalledTracer {
			m.calls.heat[site].enabled = true
			m.calls.traced += w
		}
	}
	m.ledger.open(n, 0)
	return m, nil
}

// expressible refuses paths that virtual time has no rule for: where calls are not
// drawn one by one, their outcome must follow from the site alone, and a CPU that is
// left out comes in at a time that is drawn.
func expressible(c *cpus.Code) error {
	entry := c.Path.Program(cpus.OnEntry)
	usual := c.Path.With(cpus.EntryCatchesUp)
	caught := usual.Program(cpus.OnEntry)
	for _, way := range []cpus.Section{cpus.OnExit, cpus.OnNMI, cpus.OnUp, cpus.OnDown} {
		if p := c.Path.Program(way); p != (cpus.Program{}) {
			return fmt.Errorf("the timed engine has no rule for the path \"%s: %s\" (the live engine and check take it)", way, p)
		}
	}
	switch {
	case c.Path.Tells && entry != caught:
		return fmt.Errorf("the timed engine has no rule for the path \"%s: %s\": want %q (the live engine and check take it)",
			cpus.OnEntry, entry, caught)
	case c.Literals() && !c.Path.Apart && c.Path.After == cpus.DoCall:
		return fmt.Errorf("the timed engine has no rule for the path \"%s: %s\": nothing reads the site's literal "+
			"(the live engine and check take it)", cpus.AtSite, c.Path.Program(cpus.AtSite))
	}
	return nil
}

// leads tells where a call of a site gets to.
func (m *Machine) leads(site int) cpus.Outcome {
	insn := m.code.Act(site, m.text.peek(site))
	ops := uint64(insn.Target)
	if m.code.Literals() {
		ops = m.text.literals[site]
	}
	if insn.Kind != isa.Call {
		return cpus.CalledNobody
	}
	return m.CallOps(ops)
}

// horizon is 36 years: so long a machine runs, and so long at the most anything
// takes, so that sums of a few of them are times.
const horizon Nanos = 1 << 60

// nanos rounds a cost.
func nanos(cost float64) Nanos {
	if cost >= float64(horizon) {
		return horizon
	}
	return Nanos(cost + 0.5)
}

// Now is the machine's time.
func (m *Machine) Now() Nanos { return m.now }

// Kinds of events.
const (
	evPatcher uint32 = iota // the patcher goes on, a store of it becomes visible, or its round may end soon
	evCall                  // somebody calls a hot site
	evCPU                   // a CPU goes on
	evArrive                // an interrupt gets to a CPU
	evEnter                 // a CPU in user space enters the kernel
	evLeave                 // its stay there is over
	evUnpark                // a preempted task wants its CPU back
	evLine                  // the line of the reference count gets to a CPU
)

// ask asks for an event, and returns its number.
func (m *Machine) ask(at Nanos, kind uint32, who int) int32 {
	return m.queue.push(at, uint32(who)<<bitsKind|kind)
}

// alone tells whether no other event comes up to and including a time: then the next step
// can be made without the queue.
func (m *Machine) alone(until Nanos) bool {
	at, any := m.queue.earliest()
	return until <= horizon && (!any || until < at)
}

// happen lets the next event happen; there must be one.
func (m *Machine) happen() {
	e, number := m.queue.pop()
	m.now = e.at
	m.events++
	who := int(e.what >> bitsKind)
	switch e.what & kindMask {
	case evPatcher:
		switch who {
		case storeGoes:
			m.stores.goes(number)
		case stretchEnds:
			m.endStretch()
		default:
			m.goOn()
		}
	case evCall:
		m.call(number)
	case evCPU:
		m.cpus[who].active = false
		m.run(who, false)
	case evArrive:
		m.settle(who)
		m.cpus[who].box, m.cpus[who].boxed = m.patch.sent, true
		m.wake(who)
	case evEnter:
		m.enter(who)
	case evLeave:
		m.wake(who)
	case evUnpark:
		m.unpark(who)
	case evLine:
		m.visit(who)
	}
}

// checkEvery is how many events pass between two looks whether somebody wants an end.
const checkEvery = 1 << 12

// happenUntil lets events happen until done says so, or none is left.
func (m *Machine) happenUntil(ctx context.Context, done func() bool) error {
	for n := 0; !done(); n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.queue.used == 0 {
			return nil
		}
		if m.happen(); m.now > horizon {
			return fmt.Errorf(
				"the virtual time is %v years: that is what the calibration comes to here, and longer than this engine counts",
				int64(m.now/(365*24*3600*1e9)),
			)
		}
	}
	return nil
}

// Pass lets time pass until a moment.
func (m *Machine) Pass(ctx context.Context, until Nanos) error {
	err := m.happenUntil(ctx, func() bool {
		at, any := m.queue.earliest()
		return !any || at > until
	})
	m.now = max(m.now, until)
	return err
}

// AddOps makes an ops known, callable from now on. Only before anything happens.
func (m *Machine) AddOps(addr uint64) error { return m.ops.Add(addr) }

// SetOps says what a call through an ops amounts to from now on.
func (m *Machine) SetOps(addr uint64, o cpus.Outcome) { m.called = m.ops.Set(m.called, addr, o) }

// anySite lets a step call whatever site its chooser draws.
const anySite = -1

// chooser answers what steps ask. Sites are those that the engine has drawn.
type chooser struct {
	rng   *rand.Rand
	calls *calls
	site  int32 // that is called next, or anySite
	enter bool  // a CPU in user space enters the kernel
}

// Choose implements cpus.Chooser.
func (c *chooser) Choose(what cpus.Choice, n int) int {
	switch what {
	case cpus.ChooseSite:
		if c.site >= 0 {
			return int(c.site)
		}
		return int(c.calls.anySite())
	case cpus.ChooseEnter:
		if c.enter {
			return 1
		}
		return 0
	case cpus.ChooseVersion, cpus.ChooseGrain:
		return c.rng.IntN(n)
	}
	return 0 // masked stretches, stays in tracers and moves take times of their own
}
