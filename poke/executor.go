// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
)

// Executor runs updates on the live machine: it is the Workplace there. It is one
// task, sitting on one CPU at a time.
type Executor struct {
	Driver
	*cpus.Text  // the machine's
	*int3.Table // what handlers find
	Machine     *cpus.Machine
	Lookup      int3.Lookup
	Chooser     cpus.Chooser

	// Home is the CPU that updates begin on; with Migrate the task may go on
	// on any other that houses patchers, between two steps.
	Home    int
	Migrate bool
	// Filling is how batches get into the vector.
	Filling Filling
	// Trail, where set, records the executor's steps.
	Trail *cpus.Trail

	// Shared is what patchers share with each other; those that Run on one machine at
	// the same time must have the same, and an ID each.
	Shared *Shared
	ID     int

	sender  *cpus.Sender
	lease   *cpus.Lease
	stopped bool // between StopMachine and ResumeMachine

	watching *watch // nil without a listener
}

// NewExecutor makes an executor that sends by the machine's id-th sender.
func NewExecutor(m *cpus.Machine, t *int3.Table, k int3.Lookup, ch cpus.Chooser, sender int) *Executor {
	return &Executor{
		Driver: Driver{Code: m.Code()}, Text: m.Text, Machine: m, Table: t, Lookup: k, Chooser: ch,
		Shared: NewShared(NewRules(m.Code(), 0)), sender: m.Sender(sender),
	}
}

// Run executes an update. The CPUs' Choosers go on aiming at its last batch, so
// that they try what was promised. When it fails the error is an *Error, and the
// sites are as its State says.
func (x *Executor) Run(ctx context.Context, u *Update) error {
	if x.stuck {
		return &Error{State: AllOld, Err: ErrStuck}
	}
	if err := x.sit(ctx, x.Home); err != nil {
		return &Error{State: AllOld, Err: err}
	}
	defer func() {
		x.Machine.SetPromised()
		x.lease.Release()
		x.lease = nil
	}()
	x.record('b', func() {})
	x.watching = x.watch()
	return x.Driver.Run(ctx, x, u)
}

// Passed implements Workplace: somebody may listen, the task may go on on another CPU,
// and the CPUs' Choosers are told what is in flight.
func (x *Executor) Passed(ctx context.Context, p *Patcher, st Step, failed bool) error {
	w := x.watching
	if w != nil {
		w.over(x.lease.CPU(), st)
		defer func() { w.began = w.now() }()
	}
	if failed {
		return nil
	}
	if err := x.between(ctx); err != nil {
		return err
	}
	if sites := p.InFlight(); sites != nil { // the CPUs' Choosers are told which sites are being changed
		x.Machine.SetInFlight(sites)
	}
	return nil
}

// errLost says that a patcher waits for what cannot come.
var errLost = errors.New("the batch's references were given back twice: its handlers can never be waited for")

// hopeless says why there is no use in waiting: what others have broken, or, where
// nothing is held up by giving up, that somebody wants an end.
func (x *Executor) hopeless(ctx context.Context, op Op) error {
	switch {
	case op == WaitHandlers && x.Lost():
		x.Machine.Report(cpus.Violation{Property: cpus.Deadlock, CPU: x.lease.CPU(), Why: errLost.Error()})
		return errLost
	case (op == Lock || op == Expect) && ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// Step implements Workplace: it records the step where that is asked for.
func (x *Executor) Step(ctx context.Context, p *Patcher) (status Status, err error) {
	if x.Trail == nil || p.At == len(p.Plan) {
		return p.Step(ctx, x, x.Chooser)
	}
	x.Trail.Do('p', x.ID, x.Chooser, func(ch cpus.Chooser) (cpus.Event, cpus.CPU) {
		status, err = p.Step(ctx, x, ch)
		return cpus.Nothing, cpus.CPU{}
	})
	return status, err
}

// record makes a step without choices, and notes it.
func (x *Executor) record(kind byte, do func()) {
	if x.Trail == nil {
		do()
		return
	}
	x.Trail.Do(kind, x.ID, x.Chooser, func(cpus.Chooser) (cpus.Event, cpus.CPU) {
		do()
		return cpus.Nothing, cpus.CPU{}
	})
}

// Sit lets somebody else's lease of a CPU be the executor's, who then makes its
// steps one by one (Patcher.Step).
func (x *Executor) Sit(l *cpus.Lease) { x.lease = l }

// Stopping tells whether the executor has the machine stopped.
func (x *Executor) Stopping() bool { return x.stopped }

// Late implements Workplace.
func (x *Executor) Late(p *Patcher) { x.record('d', func() { p.Drain(0, x) }) }

// Free implements Workplace.
func (x *Executor) Free() {
	if x.stopped {
		x.ResumeMachine()
	}
}

// Wait implements Workplace.
func (x *Executor) Wait(ctx context.Context, op Op) error {
	if err := x.hopeless(ctx, op); err != nil {
		return err
	}
	switch op {
	case Sync, GracePeriod, SynchronizeRCU:
		x.sender.Wait(x.lease)
	default: // handlers, stoppers and other patchers ring no bell
		x.lease.Yield()
	}
	return nil
}

// between lets the task go on on another CPU, if it may and its Chooser says so.
func (x *Executor) between(ctx context.Context) error {
	if !x.Migrate || x.stopped {
		return nil
	}
	to := x.Chooser.Choose(cpus.ChooseMove, x.Machine.CPUs())
	if to == 0 { // stays
		return nil
	}
	if to == x.lease.CPU() {
		to = 0
	}
	if !x.Machine.Role(to).RunsPatcher() || !x.Machine.Online(to) {
		return nil
	}
	x.lease.Release()
	x.lease = nil
	return x.sit(context.WithoutCancel(ctx), to) // half-way is no place to give up
}

// sit occupies a CPU, or, when that one is offline, any other that houses
// patchers. The machine never unplugs the last of those.
func (x *Executor) sit(ctx context.Context, cpu int) (err error) {
	for ; ; cpu = (cpu + 1) % x.Machine.CPUs() {
		if !x.Machine.Role(cpu).RunsPatcher() {
			continue
		}
		x.lease, err = x.Machine.Occupy(ctx, cpu)
		if err == nil || !errors.Is(err, cpus.ErrOffline) {
			return err
		}
	}
}

// Shared is the state that patchers of a live machine share besides the machine: Commons
// that each exchanges atomically. Reading is one load.
type Shared struct {
	Rules
	commons atomic.Pointer[Commons]
}

// NewShared has every lock free and nothing mapped.
func NewShared(r Rules) *Shared {
	s := &Shared{Rules: r}
	s.commons.Store(&Commons{})
	return s
}

// change exchanges the commons; f may be called several times.
func (s *Shared) change(f func(c *Commons)) {
	for {
		old := s.commons.Load()
		c := *old
		if f(&c); c == *old || s.commons.CompareAndSwap(old, &c) {
			return
		}
	}
}

// The Ground of the live machine: the methods that follow, and those of the machine's text
// and of the handlers' table.

// Store implements Ground.
func (x *Executor) Store(site, off, n int, t isa.Text) {
	site, broken := x.Shared.Lands(*x.Shared.commons.Load(), x.lease.CPU(), site, n, t)
	x.report(broken)
	x.Text.Store(site, off, n, t)
}

// report tells the machine of a violation, if there is one.
func (x *Executor) report(broken *cpus.Violation) {
	if broken != nil {
		x.Machine.Report(*broken)
	}
}

// SetOps implements Ground.
func (x *Executor) SetOps(ops uint64, o cpus.Outcome) { x.Machine.SetOps(ops, o) }

// Share implements Ground. The lock of hotplug is the machine's too: it was not taken after all, or is given back.
func (x *Executor) Share(a Access) (yes bool) {
	if a.Takes(HotplugLock) && !x.Machine.HoldHotplug() {
		return false
	}
	var broken *cpus.Violation
	x.Shared.change(func(c *Commons) { yes, broken = x.Shared.Share(c, a, x.ID, x.lease.CPU()) })
	x.report(broken)
	if (a.Op == Lock || a.Op == Unlock) && a.Mutex == HotplugLock && yes == (a.Op == Unlock) {
		x.Machine.LetHotplug()
	}
	return yes
}

// Publish implements Ground.
func (x *Executor) Publish(_ int, patches []Patch, undo bool) {
	x.report(x.Shared.Overflows(x.lease.CPU(), patches))
	x.Table.Publish(Batch(x.Machine.Code(), x.Lookup, x.Filling, patches, undo))
}

// Send implements Ground.
func (x *Executor) Send(c cpus.Cause, lazy bool) { x.sender.Send(x.lease.CPU(), c, lazy) }

// Answered implements Ground.
func (x *Executor) Answered() bool { return x.sender.Answered() }

// StopMachine implements Ground.
func (x *Executor) StopMachine(lazy bool) bool {
	x.stopped = x.sender.StopMachine(x.lease.CPU(), lazy)
	return x.stopped
}

// Stopped implements Ground.
func (x *Executor) Stopped() bool { return x.sender.Stopped() }

// ResumeMachine implements Ground.
func (x *Executor) ResumeMachine() {
	x.sender.ResumeMachine()
	x.stopped = false
}

// SyncSelf implements Ground.
func (x *Executor) SyncSelf() { x.lease.Sync() }

// watch follows the steps of one plan for the machine's listener.
type watch struct {
	*cpus.Listener
	now   func() int64
	began int64 // when the step did that is being made
}

// watch begins to follow a plan, if somebody listens.
func (x *Executor) watch() *watch {
	l := x.Machine.Listener()
	if l == nil {
		return nil
	}
	return &watch{l, x.Machine.Now, x.Machine.Now()}
}

// over tells that a step is through, or has failed.
func (w *watch) over(cpu int, st Step) {
	now := w.now()
	switch st.Op {
	case Publish:
		w.Batch(now, int(st.To-st.From))
	case Unpublish:
		w.Batch(now, 0)
	}
	w.Step(cpu, st.Name(), w.began, now)
}
