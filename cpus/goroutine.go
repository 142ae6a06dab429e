// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

// Tally counts a CPU's events.
type Tally [NumEvents]uint64

// Calls is how many calls the CPU completed.
func (t Tally) Calls() uint64 { return t[Traced] + t[Untraced] + t[Lost] }

// Add adds up two tallies.
func (t Tally) Add(u Tally) Tally {
	for i := range t {
		t[i] += u[i]
	}
	return t
}

// Sub is what happened since an earlier tally.
func (t Tally) Sub(u Tally) Tally {
	for i := range t {
		t[i] -= u[i]
	}
	return t
}

// runner is the goroutine of one CPU.
type runner struct {
	m       *Machine
	id      int
	cpu     CPU
	under   CPU // the state that an NMI has interrupted
	tally   Tally
	pad     *Scratchpad
	chooser *Random
	trail   *Trail        // nil unless steps are recorded
	watch   *watch        // nil unless somebody listens
	synced  atomic.Uint64 // cpu.Synced or less: Text forgets the versions before it; see noteSynced

	bell   chan struct{} // rung for a sleeping CPU when something waits
	asleep atomic.Bool
	seat   chan struct{} // holds a token: the goroutine that takes it may lease the CPU
	wanted atomic.Bool   // somebody waits for the lease
	pause  pause
	leased chan struct{} // the goroutine hands the CPU over
	back   chan bool     // and gets it back; false: ends
}

// quantumFor is the most steps that a CPU's goroutine makes before it lets others run.
// A round takes as long as the quanta of the goroutines queued before its targets: the
// more CPUs there are, the shorter a quantum. At 8 CPUs one of 32 steps takes a quarter of
// the time of one of 256 for the same rounds, and as many runs with a defect show it
// (docs/performance.md). Its length is random, so that CPUs lose the processor anywhere,
// inside handlers too.
func quantumFor(cpus int) int { return min(max(quantaSteps/cpus, shortest), quantaSteps) }

const (
	quantaSteps = 256 // of all CPUs together
	shortest    = 16  // below that the change from one goroutine to another costs more than its steps
)

// tickEvery is how many steps a CPU makes between two timer ticks, on average.
const tickEvery = 8192

// nmiEvery is how many steps a CPU makes between two non-maskable interrupts, on
// average, where they come.
const nmiEvery = 512

func newRunner(m *Machine, cpu int, role Role, seed uint64) *runner {
	if role == Offline { // busy, once it is plugged in
		role = Busy
	}
	r := &runner{
		m: m, id: cpu,
		cpu:     CPU{ID: int16(cpu), Role: role, Synced: 1},
		pad:     NewScratchpad(),
		chooser: NewRandom(seed, uint64(cpu)+1),
		bell:    make(chan struct{}, 1),
		seat:    make(chan struct{}, 1),
		leased:  make(chan struct{}),
		back:    make(chan bool),
	}
	r.synced.Store(1)
	if !m.online[cpu].Load() {
		r.synced.Store(fetchesNothing)
		if m.code.Path.ComesUp {
			r.cpu.PowerOff()
		}
	}
	r.chooser.busy = &m.inFlight
	r.seat <- struct{}{}
	return r
}

// Start starts every CPU's goroutine; Stop ends them.
func (m *Machine) Start() {
	for _, r := range m.runners {
		m.wait.Add(1)
		go r.run()
	}
	for cpu, r := range m.runners {
		if !m.online[cpu].Load() && !m.code.Path.ComesUp { // rests until it is plugged in
			r.lease()
		}
	}
}

// Stop ends every CPU's goroutine, each between two calls, and waits for them.
// Leases must have been given back.
func (m *Machine) Stop() {
	for cpu, r := range m.runners {
		<-r.seat
		if m.online[cpu].Load() || m.code.Path.ComesUp {
			r.lease()
		}
		r.back <- false
	}
	m.wait.Wait()
}

func (r *runner) run() {
	defer r.m.wait.Done()
	rng := rand.New(rand.NewPCG(r.chooser.rng.Uint64(), 0))
	quantum := quantumFor(len(r.m.runners))
	for {
		n := rng.IntN(quantum) + 1
		r.steps(n)
		if r.m.code.Disturbs(&r.cpu) && rng.IntN(nmiEvery) < n {
			r.nmi()
		}
		switch {
		case r.wanted.Load() && r.cpu.Preemptible():
			r.wanted.Store(false)
			r.leased <- struct{}{}
			if !<-r.back {
				return
			}
		case r.cpu.Resting():
			r.sleep()
		default:
			if rng.IntN(tickEvery) < n {
				r.tick()
				r.noteSynced()
			}
			if g, stop := r.mayStop(n); stop {
				r.stop(g)
			} else {
				runtime.Gosched()
			}
		}
	}
}

// steps makes up to n steps.
func (r *runner) steps(n int) {
	before, down := r.cpu.Synced, r.cpu.Phase == Down
	for range n {
		r.step()
		if r.cpu.Phase == Stopped || r.cpu.Resting() {
			break // nothing to do until somebody else did something
		}
	}
	r.tally[Begun] = r.pad.begun
	if r.cpu.Synced != before || (r.cpu.Phase == Down) != down {
		r.noteSynced()
	}
}

// fetchesNothing is the position of a CPU for which no old version is kept: it fetches
// nothing before it has synchronised.
const fetchesNothing = math.MaxUint64

// noteSynced publishes the oldest version that the CPU may still fetch: older ones can be forgotten.
func (r *runner) noteSynced() {
	if r.cpu.Phase == Down {
		r.synced.Store(fetchesNothing)
		return
	}
	r.synced.Store(uint64(r.cpu.Synced))
}

func (r *runner) step() {
	before := r.cpu.Phase
	if r.trail != nil {
		r.trail.step(r)
	} else {
		r.tally[Step(&r.cpu, r.m.code, r.m, r.chooser, r.pad)]++
	}
	if r.watch != nil {
		r.watch.saw(r, before)
	}
	if r.pad.Found {
		r.m.Report(r.pad.Violation)
	}
	if r.cpu.Over(r.m.code) {
		r.cpu.Return(r.under)
	}
}

// sleep blocks until the bell rings. Where interrupts synchronise a sleeper cannot
// fetch anything that is old already: nothing is held for it.
func (r *runner) sleep() {
	if r.m.code.Traits.InterruptSyncs && !r.m.code.Path.Tells {
		r.synced.Store(fetchesNothing)
		defer r.noteSynced()
	}
	defer r.asleep.Store(false)
	for _, access := range fallAsleep {
		if !access(r) {
			return
		}
	}
	<-r.bell
}

// fallAsleep is what a CPU does before it blocks, access by access; false: it stays
// awake. The flag goes up before the last look, and ringers look at the flag after
// they have left something: one of the two sees the other.
var fallAsleep = [...]func(*runner) bool{(*runner).raiseFlag, (*runner).lastLook}

func (r *runner) raiseFlag() bool {
	r.asleep.Store(true)
	return true
}

func (r *runner) lastLook() bool { return !r.wanted.Load() && !r.m.Pending(r.id, false) }

// ring wakes the CPU's goroutine if it sleeps.
func (r *runner) ring() {
	if r.asleep.Load() {
		select {
		case r.bell <- struct{}{}:
		default:
		}
	}
}

// lease takes the CPU from its goroutine; the seat must be held.
func (r *runner) lease() {
	r.wanted.Store(true)
	r.ring()
	<-r.leased
	r.asleep.Store(true) // the holder of the lease listens to the bell
}

// hold is lease for a task that will release the CPU.
func (r *runner) hold() *Lease {
	r.lease()
	r.m.leases.Add(1)
	return &Lease{r}
}

// Lease is a CPU taken over by a task of ours, a patcher: its own task waits
// between two calls until Release.
type Lease struct{ r *runner }

// Occupy takes a CPU over. It fails when ctx ends first or the CPU is offline.
func (m *Machine) Occupy(ctx context.Context, cpu int) (*Lease, error) {
	r := m.runners[cpu]
	if err := r.sit(ctx); err != nil {
		return nil, fmt.Errorf("occupy cpu %d: %w", cpu, err)
	}
	if !m.online[cpu].Load() {
		r.stand()
		return nil, fmt.Errorf("occupy cpu %d: %w", cpu, ErrOffline)
	}
	l := r.hold()
	if !r.cpu.Houses() { // it has gone meanwhile
		l.Release()
		return nil, fmt.Errorf("occupy cpu %d: %w", cpu, ErrOffline)
	}
	r.cpu.Repoll()
	return l, nil
}

// ErrOffline says that a CPU cannot be occupied because it is not there.
var ErrOffline = errors.New("offline")

// sit takes the only right to lease the CPU; stand gives it back.
func (r *runner) sit(ctx context.Context) error {
	select {
	case <-r.seat:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *runner) stand() { r.seat <- struct{}{} }

// Release gives the CPU back to its own task.
func (l *Lease) Release() {
	l.r.m.leases.Add(-1)
	l.r.asleep.Store(false)
	l.r.cpu.Repoll()
	l.r.back <- true
	l.r.stand()
}

// CPU is the number of the leased CPU.
func (l *Lease) CPU() int { return l.r.id }

// Sync makes the leased CPU itself fetch afresh.
func (l *Lease) Sync() {
	l.r.synced.Store(uint64(l.r.m.Seq()))
	l.r.cpu.Synced = l.r.m.Seq()
	l.r.m.refresh()
}

// Yield lets others run while the leased CPU waits for them; what interrupts it
// meanwhile is answered.
func (l *Lease) Yield() {
	l.answerInterrupts()
	runtime.Gosched()
}

// answerInterrupts lets the leased CPU take what waits for it.
func (l *Lease) answerInterrupts() {
	for l.r.m.Pending(l.r.id, false) || !l.r.cpu.Preemptible() {
		if l.r.cpu.BetweenCalls() { // its own task makes no call meanwhile
			l.r.cpu.Repoll()
		}
		l.r.steps(1)
		if l.r.cpu.Phase == Stopped { // only others can end that
			runtime.Gosched()
		}
	}
}

// Tallies reads every CPU's tally, taking each over for a moment.
func (m *Machine) Tallies(ctx context.Context) ([]Tally, error) {
	out := make([]Tally, len(m.runners))
	err := m.Visit(ctx, func(cpu int, t Tally) { out[cpu] = t })
	return out, err
}

// Visit takes one CPU over after the other, between two calls, and shows its tally
// and whatever else it alone writes.
func (m *Machine) Visit(ctx context.Context, see func(cpu int, t Tally)) error {
	for cpu, r := range m.runners {
		if err := r.sit(ctx); err != nil {
			return fmt.Errorf("visit cpu %d: %w", cpu, err)
		}
		if !m.online[cpu].Load() {
			see(cpu, r.tally) // its goroutine rests, see Unplug
			r.stand()
			continue
		}
		l := r.hold()
		see(cpu, r.tally)
		l.Release()
	}
	return nil
}
