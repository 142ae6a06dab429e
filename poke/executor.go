// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// Executor runs updates on the live machine: it is the Ground there. It is one
// task, sitting on one CPU at a time.
type Executor struct {
	Machine *cpus.Machine
	Table   *int3.Table
	Lookup  int3.Lookup
	Chooser cpus.Chooser

	// Home is the CPU that updates begin on; with Migrate the task may go on
	// on any other that houses patchers, between two steps.
	Home    int
	Migrate bool
	// Filling is how batches get into the vector.
	Filling Filling
	// Fault, where set, may make a store fail.
	Fault func(st Step, patch int32) error
	// Trail, where set, records the executor's steps.
	Trail *cpus.Trail

	// Shared is what patchers share with each other; those that Run on one machine at
	// the same time must have the same, and an ID each.
	Shared *Shared
	ID     int

	sender  *cpus.Sender
	lease   *cpus.Lease
	stopped bool // between StopMachine and ResumeMachine
	stuck   bool // an update is, and needs what it has published
}

// NewExecutor makes an executor that sends by the machine's id-th sender.
func NewExecutor(m *cpus.Machine, t *int3.Table, k int3.Lookup, ch cpus.Chooser, sender int) *Executor {
	return &Executor{Machine: m, Table: t, Lookup: k, Chooser: ch, Shared: NewShared(NewRules(m.Code(), 0)),
		sender: m.Sender(sender)}
}

// State is what an update left behind.
type State uint8

// The states.
const (
	AllNew State = iota // every site is new
	AllOld              // every site is old, no breakpoint is left
	Stuck               // stores failed on the way back too: breakpoints stay, and stay findable
)

var stateNames = [...]string{"all new", "all old", "stuck"}

func (s State) String() string { return stateNames[s] }

// Error is an update that did not get through.
type Error struct {
	State State
	Begun bool  // whether any step was made
	Step  Step  // that failed
	Patch int32 // of it
	Err   error
	Back  error // what stopped the way back, when Stuck
}

func (e *Error) Error() string {
	where := "did not begin"
	if e.Begun {
		where = fmt.Sprintf("failed at %s, patch %d", e.Step, e.Patch)
	}
	if e.State == Stuck {
		return fmt.Sprintf("update %s: %v; the way back failed too: %v; what breakpoints are left stay findable", where,
			e.Err, e.Back)
	}
	return fmt.Sprintf("update %s: %v; every site is %s", where, e.Err, e.State)
}

func (e *Error) Unwrap() error { return e.Err }

// Update is one plan for one set of patches.
type Update struct {
	Patches []Patch
	Plan    []Step
	Shape   Shape
	Settles bool // what the protocol promises when it is through; see Protocol.Settles
}

// storeTries is how often a store is tried on the way back before the update is
// given up as Stuck.
const storeTries = 3

// ErrStuck refuses updates after one that is stuck: publishing another batch
// would hide its breakpoints from the handlers (ftrace_disabled,
// kernel/trace/ftrace.c).
var ErrStuck = errors.New("an earlier update is stuck")

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
	p := &Patcher{Code: x.Machine.Code(), Patches: u.Patches, Plan: u.Plan, Fault: x.Fault}
	failed := x.drive(ctx, p)
	if failed == nil {
		x.settle(u, u.Patches, false)
		for p.Waiting() > 0 { // stores that no fence pushed out arrive at last
			x.record('d', func() { p.Drain(0, x) })
		}
		return nil
	}
	e := &Error{State: AllOld, Err: failed, Patch: p.Done}
	unsettled := u.Patches
	if p.At < len(p.Plan) {
		e.Begun = p.At > 0 || p.Done > 0 || p.stage > 0 || ctx.Err() == nil
		e.Step = p.Plan[p.At]
		e.Patch += e.Step.From
		if e.Step.Op == Verify { // the other sites are none of this update's business
			unsettled = unsettled[:p.Done]
		}
	}
	err := x.takeBack(u, p)
	if err == nil {
		err = x.checkOld(unsettled)
	}
	if err != nil {
		x.stuck = true
		e.State, e.Back = Stuck, err
		return e
	}
	x.settle(u, unsettled, true)
	return e
}

// checkOld looks whether patches are as the way back should have left them: what
// an update says of itself is not taken on trust.
func (x *Executor) checkOld(patches []Patch) error {
	code := x.Machine.Code()
	for i := range patches {
		p := &patches[i]
		if got := x.Peek(int(p.Site)); got != p.Old {
			return &MismatchError{p.Addr, p.Old.Format(code.Len), got.Format(code.Len)}
		}
	}
	return nil
}

// settle promises what is there now, if the protocol does.
func (x *Executor) settle(u *Update, patches []Patch, undo bool) {
	if !u.Settles {
		return
	}
	for i := range patches {
		p := &patches[i]
		x.Machine.Settle(int(p.Site), p.text(undo))
	}
}

// takeBack executes the plan that undoes what p has done. Nothing cancels it.
func (x *Executor) takeBack(u *Update, p *Patcher) error {
	p.drain(x)
	tries := 0
	back := &Patcher{Code: p.Code, Patches: p.Patches, Plan: Undo(p.Plan, p.At, p.Done, u.Shape)}
	if x.Fault != nil {
		back.Fault = x.Fault
	}
	for {
		err := x.drive(context.Background(), back)
		if err == nil {
			return nil
		}
		if tries++; tries == storeTries {
			back.drain(x)  // what was stored arrives all the same
			if x.stopped { // the CPUs at least must go on
				x.ResumeMachine()
			}
			return err
		}
	}
}

// drive steps a patcher until it ends or fails.
func (x *Executor) drive(ctx context.Context, p *Patcher) error {
	w := x.watch()
	for {
		at := p.At
		status, err := x.step(ctx, p)
		if w != nil && (p.At != at || err != nil && at < len(p.Plan)) {
			w.over(x.lease.CPU(), p.Plan[at])
		}
		switch {
		case err != nil:
			return err
		case status == Ended:
			return nil
		case status == Waits:
			if err := x.hopeless(ctx, p.Plan[p.At].Op); err != nil {
				return err
			}
			x.wait(p.Plan[p.At].Op)
		case p.At != at:
			if err := x.between(ctx); err != nil {
				return err
			}
			x.inFlight(p)
			if w != nil {
				w.begins()
			}
		}
	}
}

// errLost says that a patcher waits for what cannot come.
var errLost = errors.New("the batch's references were given back twice: its handlers can never be waited for")

// hopeless says why there is no use in waiting: what others have broken, or, where
// nothing is held up by giving up, that somebody wants an end.
func (x *Executor) hopeless(ctx context.Context, op Op) error {
	switch {
	case op == WaitHandlers && x.Table.Lost():
		x.Machine.Report(cpus.Violation{Property: cpus.Deadlock, CPU: x.lease.CPU(), Why: errLost.Error()})
		return errLost
	case (op == Lock || op == Expect) && ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// step makes one step, and records it where that is asked for.
func (x *Executor) step(ctx context.Context, p *Patcher) (status Status, err error) {
	if x.Trail == nil || p.At == len(p.Plan) {
		return p.Step(ctx, x, x.Chooser)
	}
	x.Trail.Do('p', x.ID, x.Chooser, func(ch cpus.Chooser) (cpus.Event, cpus.CPU) {
		status, err = p.Step(ctx, x, ch)
		return cpus.Nothing, cpus.CPU{}
	})
	return status, err
}

// record does something that asks nobody anything.
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

// wait blocks until what the patcher waits for may have come.
func (x *Executor) wait(op Op) {
	switch op {
	case Sync, GracePeriod, SynchronizeRCU:
		x.sender.Wait(x.lease)
	default: // handlers, stoppers and other patchers ring no bell
		x.lease.Yield()
	}
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

// hintPatches is how many patches ahead of a plan that goes site by site are
// called in flight.
const hintPatches = 64

// inFlight tells the CPUs' Choosers which sites are being changed.
func (x *Executor) inFlight(p *Patcher) {
	if p.At == len(p.Plan) {
		return
	}
	st := p.Plan[p.At]
	from, to := int(st.From), int(st.To)
	switch {
	case st.Op == Write && to-from == 1 && from%hintPatches == 0:
		to = min(from+hintPatches, len(p.Patches))
	case st.Op != Publish:
		return
	}
	sites := make([]int32, 0, to-from)
	for i := from; i < to; i++ {
		sites = append(sites, p.Patches[i].Site)
	}
	x.Machine.SetInFlight(sites)
}
