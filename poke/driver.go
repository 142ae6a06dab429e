// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// Workplace is a Ground where a patcher waits for others by letting them run: the wall clock's, in
// short. In virtual time the machine calls a waiting patcher back instead (sim/timed).
type Workplace interface {
	Ground
	// Step makes one step of a patcher.
	Step(ctx context.Context, p *Patcher) (Status, error)
	// Wait returns when what a step waits for may have come. An error says that it never
	// will, or that somebody wants an end.
	Wait(ctx context.Context, op Op) error
	// Passed is told of every step that is over, or has failed. An error ends the update.
	Passed(ctx context.Context, p *Patcher, st Step, failed bool) error
	// Late makes one store visible that no fence has pushed out.
	Late(p *Patcher)
	// Free lets those go on that an update has left standing still.
	Free()
}

// Driver carries updates out at a Workplace: each to its end, or back.
type Driver struct {
	Code *cpus.Code
	// Fault, where set, may make a store fail.
	Fault func(st Step, patch int32) error

	stuck bool // an update is, and needs what it has published
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
	Settles bool // see Protocol.Settles
}

// storeTries is how often a store is tried on the way back before the update is
// given up as Stuck.
const storeTries = 3

// ErrStuck refuses updates after one that is stuck: publishing another batch
// would hide its breakpoints from the handlers (ftrace_disabled,
// kernel/trace/ftrace.c).
var ErrStuck = errors.New("an earlier update is stuck")

// Promise promises what an update has left, if its protocol does.
func (u *Update) Promise(g Ground) { u.promise(g, u.Patches, false) }

func (u *Update) promise(g Ground, patches []Patch, undo bool) {
	if !u.Settles {
		return
	}
	for i := range patches {
		p := &patches[i]
		g.Settle(int(p.Site), p.text(undo))
	}
}

// Run executes an update. When it fails the error is an *Error, and the sites are as
// its State says.
func (d *Driver) Run(ctx context.Context, w Workplace, u *Update) error {
	if d.stuck {
		return &Error{State: AllOld, Err: ErrStuck}
	}
	p := &Patcher{Code: d.Code, Patches: u.Patches, Plan: u.Plan, Fault: d.Fault}
	failed := carryOut(ctx, w, p)
	if failed == nil {
		u.Promise(w)
		for p.Waiting() > 0 {
			w.Late(p)
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
	err := d.takeBack(w, u, p)
	if err == nil {
		err = d.checkOld(w, unsettled)
	}
	if err != nil {
		d.stuck = true
		e.State, e.Back = Stuck, err
		return e
	}
	u.promise(w, unsettled, true)
	return e
}

// checkOld looks whether patches are as the way back should have left them: what
// an update says of itself is not taken on trust.
func (d *Driver) checkOld(g Ground, patches []Patch) error {
	for i := range patches {
		p := &patches[i]
		if got := g.Peek(int(p.Site)); got != p.Old {
			return &MismatchError{p.Addr, p.Old.Format(d.Code.Len), got.Format(d.Code.Len)}
		}
	}
	return nil
}

// takeBack executes the plan that undoes what p has done. Nothing cancels it.
func (d *Driver) takeBack(w Workplace, u *Update, p *Patcher) error {
	p.drain(w)
	tries := 0
	back := &Patcher{Code: p.Code, Patches: p.Patches, Plan: Undo(p.Plan, p.At, p.Done, u.Shape), Fault: d.Fault}
	for {
		err := carryOut(context.Background(), w, back)
		if err == nil {
			return nil
		}
		if tries++; tries == storeTries {
			back.drain(w) // what was stored arrives all the same
			w.Free()
			return err
		}
	}
}

// carryOut steps a patcher until it ends or fails.
func carryOut(ctx context.Context, w Workplace, p *Patcher) error {
	for {
		at := p.At
		status, err := w.Step(ctx, p)
		switch {
		case err != nil:
			_ = w.Passed(ctx, p, p.Plan[at], true) // the first error counts
			return err
		case status == Ended:
			return nil
		case status == Waits:
			err = w.Wait(ctx, p.Plan[p.At].Op)
		case p.At != at:
			err = w.Passed(ctx, p, p.Plan[at], false)
		}
		if err != nil {
			return err
		}
	}
}

// hintPatches is how many patches ahead of a plan that goes site by site are
// called in flight.
const hintPatches = 64

// InFlight is the sites that the next step begins to change, so that callers can disturb just
// these; nil where the step goes on with sites of a step before.
func (p *Patcher) InFlight() []int32 {
	if p.At == len(p.Plan) {
		return nil
	}
	st := p.Plan[p.At]
	from, to := int(st.From), int(st.To)
	switch {
	case st.Op == Write && to-from == 1 && from%hintPatches == 0:
		to = min(from+hintPatches, len(p.Patches))
	case st.Op != Publish:
		return nil
	}
	sites := make([]int32, 0, to-from)
	for i := from; i < to; i++ {
		sites = append(sites, p.Patches[i].Site)
	}
	return sites
}

// Progress is how far a Patcher has got, as a value that can be copied.
type Progress struct {
	At       int
	Done     int32
	Stage    uint8     // accesses made of the step, or of its current patch
	Buffered []StoreID // stores that are not visible yet, the oldest first
}

// StoreID names a store: patch Patch of step At.
type StoreID struct{ At, Patch int32 }

// Progress says how far the patcher has got; it may put what is buffered into
// room, to save an allocation.
func (p *Patcher) Progress(room []StoreID) Progress {
	room = room[:0]
	for _, s := range p.buffer {
		room = append(room, s.of)
	}
	return Progress{p.At, p.Done, p.stage, room}
}

// Resume sets the patcher to where another one of its plan had got.
func (p *Patcher) Resume(g Progress) {
	p.At, p.Done, p.stage = g.At, g.Done, g.Stage
	p.buffer = p.buffer[:0]
	for _, b := range g.Buffered {
		p.buffer = append(p.buffer, p.storeOf(b))
	}
}

// StoreAt tells what a store writes: n bytes from off on, of a site's text if
// code, else of its literal.
func (p *Patcher) StoreAt(id StoreID) (site, off, n int, text isa.Text, code bool) {
	s := p.storeOf(id)
	return int(s.site), int(s.off), int(s.n), s.text, s.kind == siteText
}

// Begun tells whether the step that comes next has made an access already, InPatch
// whether that was of the patch it is at, Clearing whether all handlers have left that a
// WaitHandlers waits for.
func (p *Patcher) Begun() bool    { return p.stage > 0 || p.Done > 0 }
func (p *Patcher) InPatch() bool  { return p.stage > 0 }
func (p *Patcher) Clearing() bool { return p.stage == clearing }

// Place is where the patcher is, without what it has buffered.
func (p *Patcher) Place() (at int, done int32, stage uint8) { return p.At, p.Done, p.stage }

// Waiting is how many stores are buffered; Holds tells whether one of them is to
// a site's text, or to its literal.
func (p *Patcher) Waiting() int { return len(p.buffer) }

// Holds is the other half of Waiting.
func (p *Patcher) Holds(site int32, literal bool) bool {
	at := place{kind: siteText, site: site}
	if literal {
		at.kind = siteLiteral
	}
	return p.buffer.oldest(at) >= 0
}

// HoldsBatch tells whether a Publish or an Unpublish is buffered, HoldsOps whether an
// Attach or a Release is.
func (p *Patcher) HoldsBatch() bool { return p.holds(theBatch) }
func (p *Patcher) HoldsOps() bool   { return p.holds(anOps) }

func (p *Patcher) holds(k placeKind) bool {
	return slices.ContainsFunc(p.buffer, func(s store) bool { return s.kind == k })
}

// Drain makes the i-th of the buffered stores visible, unless an older one to the
// same place must be first.
func (p *Patcher) Drain(i int, g Ground) bool {
	if i >= len(p.buffer) || p.buffer.oldest(p.buffer[i].place) < i {
		return false
	}
	p.release(i, g)
	return true
}

// Stores lists every store that the plan can let wait, and tells how many can wait at
// once: one for each place.
func (p *Patcher) Stores() (list []StoreID, most int) {
	places := map[place]bool{}
	for at, st := range p.Plan {
		if st.Op == Write {
			for i := st.From; i < st.To; i++ {
				list = append(list, StoreID{int32(at), i})
			}
		} else if st.Op.stores() {
			list = append(list, StoreID{int32(at), st.From})
		}
	}
	for _, of := range list {
		places[p.storeOf(of).place] = true
	}
	return list, len(places)
}
