// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Config is what a Machine is built from.
type Config struct {
	Code    *Code
	Roles   []Role  // one for each CPU; see ParseRoles
	Handler Handler // answers traps
	NopOps  uint64  // the ops that disabled sites' literals name
	Initial func(site int) isa.Text
	Seed    uint64
	// Senders is how many patchers may send rounds at once. Default 1.
	Senders int
	// Trail, where set, records what the machine does.
	Trail *Trail
	// Listener, where set, is told what it does.
	Listener *Listener
}

// Machine is real concurrency: one goroutine a CPU, sharing state made of atomics.
// It implements Shared.
type Machine struct {
	Handler
	*Text
	Ledger *Ledger

	code      *Code
	roles     []Role
	runners   []*runner
	senders   []*Sender
	boxes     []box
	online    []atomic.Bool
	stopped   []atomic.Bool   // stands still for stop_machine
	space     []atomic.Uint32 // inUser, owes
	arrived   atomic.Int32
	readers   atomic.Int32 // who keeps CPUs from being brought up, -1 while one is
	stopping  atomic.Bool  // one stop_machine at a time: stop_cpus_mutex
	ops       OpsTable
	called    atomic.Uint32            // OpsStates of ops
	inFlight  atomic.Pointer[inFlight] // for the Choosers' bias
	hotplug   sync.RWMutex             // cpus_read_lock, kernel/cpu.c
	parked    []Task                   // by CPU, where a Lockstep preempts tasks
	broken    Reports
	reporting sync.Mutex // guards broken
	wait      sync.WaitGroup
	listener  *Listener
	built     time.Time
	rounds    atomic.Uint64 // sent while somebody listens
	pacing    atomic.Int32  // Pacing
	leases    atomic.Int32  // CPUs that somebody sits on
	waiting   atomic.Int32  // senders on such a CPU that wait for answers
}

// For completes the code of a machine with CPUs of these roles; an error says why there is none.
func (c *Code) For(roles []Role) error {
	switch n := len(roles); {
	case n == 0 || n > MaxCPUs:
		return fmt.Errorf("%d CPUs: want 1 to %d", n, MaxCPUs)
	case Housekeeper(roles) < 0:
		return errors.New("no CPU that a patcher may run on")
	case len(c.Sites) == 0:
		return errors.New("no sites: nothing can be patched or called")
	}
	c.Complete()
	return nil
}

// NewMachine builds a machine at rest.
func NewMachine(cfg Config) (*Machine, error) {
	n := len(cfg.Roles)
	if err := cfg.Code.For(cfg.Roles); err != nil {
		return nil, err
	}
	m := &Machine{
		Handler: cfg.Handler,
		Text:    newText(len(cfg.Code.Sites), cfg.Initial, cfg.NopOps),
		Ledger:  &Ledger{start: time.Now(), cpus: make([]account, n)},
		code:    cfg.Code,
		roles:   cfg.Roles,
		boxes:   make([]box, n),
		online:  make([]atomic.Bool, n),
		stopped: make([]atomic.Bool, n),
		space:   make([]atomic.Uint32, n),
		parked:  make([]Task, n),

		listener: Tee(cfg.Listener),
		built:    time.Now(),
	}
	ops, states, err := NewOpsTable(cfg.NopOps)
	if err != nil {
		return nil, err
	}
	m.ops = ops
	m.called.Store(uint32(states))
	for range max(cfg.Senders, 1) {
		m.senders = append(m.senders, newSender(m, len(m.senders), n))
	}
	for cpu, role := range cfg.Roles {
		m.online[cpu].Store(role != Offline)
		m.runners = append(m.runners, newRunner(m, cpu, role, cfg.Seed))
		m.runners[cpu].trail = cfg.Trail
		if m.listener != nil {
			m.runners[cpu].watch = &watch{Listener: m.listener}
		}
	}
	return m, nil
}

// Code is what the machine runs.
func (m *Machine) Code() *Code { return m.code }

// CPUs is the number of CPUs, online or not.
func (m *Machine) CPUs() int { return len(m.runners) }

// Online tells whether a CPU takes part.
func (m *Machine) Online(cpu int) bool { return m.online[cpu].Load() }

// OnlineCPUs is the number of CPUs that take part.
func (m *Machine) OnlineCPUs() (n int) {
	for i := range m.online {
		if m.online[i].Load() {
			n++
		}
	}
	return n
}

// patcherCPUsOnline is the number of CPUs online that patchers may run on.
func (m *Machine) patcherCPUsOnline() (n int) {
	for cpu, r := range m.roles {
		if r.RunsPatcher() && m.online[cpu].Load() {
			n++
		}
	}
	return n
}

// Role is the role that a CPU was given.
func (m *Machine) Role(cpu int) Role { return m.roles[cpu] }

// AddOps makes an ops known, callable from now on. Only before Start.
func (m *Machine) AddOps(addr uint64) error { return m.ops.Add(addr) }

// SetOps says what a call through the ops amounts to from now on: CalledTracer
// when it is attached, CalledFreed when it has been released.
func (m *Machine) SetOps(addr uint64, o Outcome) {
	for {
		old := m.called.Load()
		if m.called.CompareAndSwap(old, uint32(m.ops.Set(OpsStates(old), addr, o))) {
			return
		}
	}
}

// CallOps implements Shared.
func (m *Machine) CallOps(addr uint64) Outcome {
	return m.ops.Call(OpsStates(m.called.Load()), addr)
}

// inFlight is what the Choosers' bias for trouble aims at.
type inFlight struct {
	sites    []int32
	patching bool // they are being changed, and not only promised
}

// SetInFlight tells the Choosers which sites are being changed, nil for none;
// SetPromised that the last ones are not any more, but still worth calling.
func (m *Machine) SetInFlight(sites []int32) {
	m.inFlight.Store(&inFlight{sites, len(sites) > 0})
}

// SetPromised implements the other half of SetInFlight.
func (m *Machine) SetPromised() {
	if f := m.inFlight.Load(); f != nil {
		m.inFlight.Store(&inFlight{f.sites, false})
	}
}

// Report records a violation.
func (m *Machine) Report(v Violation) {
	m.reporting.Lock()
	defer m.reporting.Unlock()
	m.broken.Report(v)
}

// Violations is how many properties were violated so far, and the first of them.
func (m *Machine) Violations() (total uint64, first []Violation) {
	m.reporting.Lock()
	defer m.reporting.Unlock()
	total, first = m.broken.Violations()
	return total, append([]Violation(nil), first...)
}

// ErrLastOne says that a CPU cannot be unplugged because no other one is online
// that patchers may run on.
var ErrLastOne = errors.New("it is the last one that patchers may run on")

// ErrAlready says that a CPU is as it was to become.
var ErrAlready = errors.New("already")

// Unplug takes a CPU out: it answers the requests that still wait for it, and from then on no round
// has it as a target. It waits for a patcher that occupies the CPU, and for a round or a
// stop_machine that is being sent (cpu_down, kernel/cpu.c). One CPU that patchers may run on must
// remain online.
func (m *Machine) Unplug(ctx context.Context, cpu int) error {
	r := m.runners[cpu]
	if err := r.sit(ctx); err != nil {
		return fmt.Errorf("unplug cpu %d: %w", cpu, err)
	}
	defer r.stand()
	// Only now, and before the CPU is taken over: a patcher that holds the
	// lock in stop_machine needs the CPU to arrive.
	m.hotplug.Lock()
	defer m.hotplug.Unlock()
	switch {
	case !m.online[cpu].Load():
		return fmt.Errorf("unplug cpu %d: it is offline %w", cpu, ErrAlready)
	case m.roles[cpu].RunsPatcher() && m.patcherCPUsOnline() == 1:
		return fmt.Errorf("unplug cpu %d: %w", cpu, ErrLastOne)
	}
	r.lease()
	(&Lease{r}).answerInterrupts()
	m.online[cpu].Store(false)
	r.synced.Store(fetchesNothing)
	return nil // the goroutine rests in its hand-over until Plug
}

// HoldHotplug keeps CPUs from being brought up (cpus_read_lock), false while one is;
// LetHotplug gives that back.
func (m *Machine) HoldHotplug() bool {
	for {
		n := m.readers.Load()
		if n < 0 {
			return false
		}
		if m.readers.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// LetHotplug is the other half of HoldHotplug.
func (m *Machine) LetHotplug() { m.readers.Add(-1) }

// BringUp implements Shared: the lock is cpus_write_lock. Only where a path says how CPUs come
// online; see Plug. From now on the text keeps the versions that the CPU may fetch until it
// synchronises.
func (m *Machine) BringUp(cpu int) bool {
	if !m.readers.CompareAndSwap(0, -1) {
		return false
	}
	m.runners[cpu].synced.Store(uint64(m.Seq()))
	return true
}

// ComeOnline, TakeDown and EndHotplug implement Shared.
func (m *Machine) ComeOnline(cpu int) { m.online[cpu].Store(true) }

// TakeDown is false while a round or a stop_machine is being sent, too: its sender may be about to ask this CPU. One CPU
// that patchers may run on stays online.
func (m *Machine) TakeDown(cpu int) bool {
	if !m.hotplug.TryLock() {
		return false
	}
	defer m.hotplug.Unlock()
	if m.Pending(cpu, false) || m.patcherCPUsOnline() == 1 || !m.readers.CompareAndSwap(0, -1) {
		return false
	}
	m.online[cpu].Store(false)
	return true
}

// EndHotplug is the end of BringUp and of TakeDown.
func (m *Machine) EndHotplug(int) { m.readers.Store(0) }

// Plug brings a CPU in. Bringing up serialises: it fetches afresh.
func (m *Machine) Plug(ctx context.Context, cpu int) error {
	r := m.runners[cpu]
	if err := r.sit(ctx); err != nil {
		return fmt.Errorf("plug cpu %d: %w", cpu, err)
	}
	m.hotplug.Lock()
	defer m.hotplug.Unlock()
	if m.online[cpu].Load() {
		r.stand()
		return fmt.Errorf("plug cpu %d: it is online %w", cpu, ErrAlready)
	}
	l := &Lease{r}
	l.Sync()
	m.online[cpu].Store(true)
	l.Release()
	return nil
}
