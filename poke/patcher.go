// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Ground is what a patcher works on. Each method is one access. Publish,
// Unpublish and Drained stand for one too, though per-CPU references are many:
// a handler looks at its own CPU's only.
type Ground interface {
	// Peek and Literal read as loads do; Store and StoreLiteral write, at once
	// for loads, for fetches when their CPU synchronises.
	Peek(site int) isa.Text
	Literal(site int) uint64
	Store(site, off, n int, t isa.Text)
	StoreLiteral(site int, ops uint64)
	// Unsettle takes a site's promise back, before it is changed. Promises are
	// the checks' bookkeeping and no access of the protocol.
	Unsettle(site int)

	// Begin notes what an update makes of a site, before the site is published and
	// before its breakpoint is stored. It is bookkeeping, too.
	Begin(site int, c cpus.Change)

	// Publish makes patches findable for trap handlers; step is where in its plan.
	Publish(step int, patches []Patch, undo bool)
	Unpublish()
	Drained() bool
	Clear()

	// SetOps says how a call through an ops ends from now on: in a tracer, or in freed memory.
	// Settle promises that no CPU executes the text that want has replaced; like Unsettle it is
	// bookkeeping.
	SetOps(ops uint64, o cpus.Outcome)
	Settle(site int, want isa.Text)

	// Share makes an access to what patchers share, as Rules.Share says.
	Share(a Access) bool

	// Send starts a round, Answered tells whether it is over; lazy leaves out
	// CPUs in user space.
	Send(c cpus.Cause, lazy bool)
	Answered() bool
	// StopMachine asks the other CPUs to stand still, false while another
	// patcher has them do so; lazy leaves out CPUs in user space, for whom Resumed is
	// false all the same. Stopped tells whether all do, ResumeMachine lets
	// them go on.
	StopMachine(lazy bool) bool
	Stopped() bool
	ResumeMachine()
	// SyncSelf makes the patcher's own CPU fetch afresh.
	SyncSelf()
}

// Patcher is the state of one execution of a plan.
type Patcher struct {
	Code    *cpus.Code
	Patches []Patch
	Plan    []Step
	Menu    Menu // nil: the plan is one update, and then it is over

	At    int   // the step that comes next
	Done  int32 // patches of it that are done
	stage uint8 // accesses made of the step, or of its current patch

	// Fault, where set, may make a store fail before it is made: it changes
	// nothing then.
	Fault func(st Step, patch int32) error

	buffer buffer
}

// Status is how far a step got.
type Status uint8

// The statuses.
const (
	Ran   Status = iota // go on
	Waits               // ask again when others have moved
	Ended               // the plan is through
)

// Step advances the patcher by at most one access to g. Errors are
// *MismatchError from Verify, ctx's from Verify, Publish and Write, and Fault's
// from Write; the state then says how far the plan got.
func (p *Patcher) Step(ctx context.Context, g Ground, ch cpus.Chooser) (Status, error) {
	switch {
	case p.Between() && p.Endless():
		return p.choose(g, ch), nil
	case p.Between():
		return Ended, nil
	}
	st := p.Plan[p.At]
	switch st.Op {
	case Verify, Write, Publish:
		if ctx.Err() != nil {
			return Ran, context.Cause(ctx)
		}
	}
	switch st.Op {
	case Verify:
		return Ran, p.verify(st, g)
	case Write:
		return Ran, p.write(st, g, ch)
	case Publish, Unpublish, Attach, Release:
		if p.put(p.storeOf(StoreID{int32(p.At), st.From}), g, ch) {
			p.next()
		}
	case Fence:
		if p.drainOne(g) {
			return Ran, nil
		}
		g.SyncSelf()
		p.next()
	case Resume:
		if p.stage++; p.stage == 1 {
			g.SyncSelf()
			return Ran, nil
		}
		g.ResumeMachine()
		p.next()
	case Sync, StopMachine, WaitHandlers, GracePeriod, SynchronizeRCU:
		return p.await(st, g), nil
	default:
		return p.around(st, g), nil
	}
	return Ran, nil
}

func (p *Patcher) next() {
	p.At, p.Done, p.stage = p.At+1, 0, 0
	for i := range p.Menu {
		if p.Menu[i].To == p.At { // that update is over
			p.At = len(p.Plan)
		}
	}
}

// The stages of a step that waits for others.
const (
	asking = iota
	waiting
	clearing
)

// await does the steps that ask others for something and wait until they have done it.
func (p *Patcher) await(st Step, g Ground) Status {
	switch p.stage {
	case asking:
		// A grace period orders memory: Documentation/RCU/Design/Requirements, Linux 6.12, "Grace-Period Guarantee".
		orders := st.Op == GracePeriod || st.Op == SynchronizeRCU
		if orders && p.drainOne(g) || st.Op == WaitHandlers && p.push(place{kind: theBatch}, g) {
			return Ran
		}
		p.stage = waiting
		switch st.Op {
		case Sync:
			p.round(st, g)
		case GracePeriod:
			g.Send(cpus.Quiesce, false)
		case SynchronizeRCU:
			g.Send(cpus.QuiesceCPUs, false)
		case StopMachine:
			if !g.StopMachine(st.Lazy) {
				p.stage = asking
			}
		default: // WaitHandlers sends no request
			return Ran
		}
		return Waits
	case waiting:
		done := g.Answered
		switch st.Op {
		case StopMachine:
			done = g.Stopped
		case WaitHandlers:
			done = g.Drained
		}
		if !done() {
			return Waits
		}
		if p.stage = clearing; st.Op != WaitHandlers {
			p.next()
		}
	case clearing:
		g.Clear()
		p.next()
	}
	return Ran
}

// round asks the other CPUs to fetch afresh. Where the kernel does so on the sender's own
// CPU too, that is before it waits: flush_icache_all fences there first
// (arch/riscv/mm/cacheflush.c, Linux 7.1), on_each_cpu runs its function there once the
// others are asked (smp_call_function_many_cond, kernel/smp.c). With whatever another
// patcher stores between the two, its own CPU can as well fetch what was there before:
// so they are one step.
func (p *Patcher) round(st Step, g Ground) {
	g.Send(cpus.Sync, st.Lazy)
	if !p.Code.Traits.RoundSparesSelf {
		g.SyncSelf()
	}
}

// advance counts one patch of the current step.
func (p *Patcher) advance(st Step) {
	p.stage = 0
	if p.Done++; st.From+p.Done >= st.To {
		p.next()
	}
}

// around does the steps of what surrounds a protocol.
func (p *Patcher) around(st Step, g Ground) Status {
	switch st.Op {
	case Lock:
		if !g.Share(Access{Op: Lock, Mutex: st.Mutex}) {
			return Waits
		}
	case Unlock:
		if p.drainOne(g) { // a release
			return Ran
		}
		g.Share(Access{Op: Unlock, Mutex: st.Mutex})
	case Settle:
		patch := &p.Patches[st.From+p.Done]
		g.Settle(int(patch.Site), patch.text(st.Undo))
		p.advance(st)
		return Ran
	case Clear:
		if p.push(place{kind: theBatch}, g) {
			return Ran
		}
		g.Clear()
	case Map:
		g.Share(Access{Op: Map, Site: p.Patches[st.From].Site})
	case Walk:
		if p.stage == asking && g.Share(Access{Op: Walk}) {
			p.stage = waiting
			return Ran
		}
		if p.stage == waiting {
			g.Share(Access{Op: Walk, Below: true})
		}
	case Split, Collapse, Free, Raise:
		g.Share(Access{Op: st.Op})
	case Expect:
		if !g.Share(Access{Op: Expect}) {
			return Waits
		}
	}
	p.next()
	return Ran
}

// MismatchError says that a site, or its literal, is not what the patch expects.
type MismatchError struct {
	Addr      records.Addr
	Want, Got string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("site %s holds %s, expected %s", e.Addr, e.Got, e.Want)
}

// verify compares one site with the text that it must hold. x86_64 verifies every site
// before the first store (ftrace_replace_code, arch/x86/kernel/ftrace.c); arm64
// each before its own; riscv64 does not verify when it enables or disables
// (Linux 7.1). Here all do as x86_64 does.
func (p *Patcher) verify(st Step, g Ground) error {
	if st.From == st.To {
		p.next()
		return nil
	}
	patch := &p.Patches[st.From+p.Done]
	if p.stage == 0 {
		got := p.buffer.over(place{kind: siteText, site: patch.Site}, g.Peek(int(patch.Site)))
		if want := patch.text(!st.Undo); got != want && !(patch.Contended && slices.Contains(p.Code.Meant, got)) {
			return &MismatchError{patch.Addr, want.Format(p.Code.Len), got.Format(p.Code.Len)}
		}
		g.Unsettle(int(patch.Site))
		if p.Code.Literals() && !patch.Contended {
			p.stage = 1
			return nil
		}
	} else if got, want := uint64(p.buffer.over(place{kind: siteLiteral, site: patch.Site},
		isa.Text(g.Literal(int(patch.Site))))), patch.Ops(!st.Undo); got != want {
		return &MismatchError{patch.Addr, fmt.Sprintf("ops %#x", want), fmt.Sprintf("ops %#x", got)}
	}
	p.advance(st)
	return nil
}

// ErrInjected is the failure of a store that a test asked for; a kernel's would
// be EPERM (aarch64_insn_patch_text_nosync) or EFAULT.
var ErrInjected = errors.New("injected write failure")

// write stores one part of one patch.
func (p *Patcher) write(st Step, g Ground, ch cpus.Chooser) error {
	i := st.From + p.Done
	patch := &p.Patches[i]
	if p.stage == 0 && p.Fault != nil {
		if err := p.Fault(st, i); err != nil {
			return fmt.Errorf("write %s of site %s: %w", st.Part, patch.Addr, err)
		}
	}
	p.stage = 1
	s := p.storeOf(StoreID{int32(p.At), i})
	if s.n == 0 {
		p.advance(st)
		return nil
	}
	if p.put(s, g, ch) {
		p.advance(st)
	}
	return nil
}

// storeOf is the store that a step makes for one patch.
func (p *Patcher) storeOf(of StoreID) store {
	st := p.Plan[of.At]
	switch st.Op {
	case Publish, Unpublish:
		return store{of: of, place: place{kind: theBatch}}
	case Attach:
		return store{of: of, place: place{kind: anOps, ops: p.Patches[of.Patch].Ops(st.Undo)}}
	case Release:
		return store{of: of, place: place{kind: anOps, ops: p.Patches[of.Patch].Ops(!st.Undo)}}
	}
	patch := &p.Patches[of.Patch]
	s := store{of: of, place: place{kind: siteText, site: patch.Site}, text: patch.text(st.Undo)}
	bp := uint8(p.Code.Traits.BreakpointLen)
	whole := uint8(patch.len(p.Code))
	ops := isa.Text(patch.Ops(st.Undo))
	switch st.Part {
	case Breakpoint:
		s.n, s.text = bp, p.Code.Arch.Breakpoint()
	case Tail: // none where the breakpoint covers the site
		s.off, s.n = bp, max(whole, bp)-bp
		s.text >>= 8 * isa.Text(bp)
	case Head: // nothing where the breakpoint is what is wanted
		if s.n = bp; s.text.Slice(0, int(bp)) == p.Code.Arch.Breakpoint() {
			s.n = 0
		}
	case Word:
		s.n = whole
	case Bytes: // those that the site has
		s.off, s.n = st.Span.From, max(min(st.Span.To, whole), st.Span.From)-st.Span.From
		s.text = s.text.Slice(int(s.off), int(s.n))
	case Literal:
		s.kind, s.n, s.text = siteLiteral, 8, ops
	case LiteralLow, LiteralHigh:
		s.kind, s.off, s.n = siteLiteral, 4*uint8(st.Part-LiteralLow), 4
		s.text = ops.Slice(int(s.off), 4)
	}
	return s
}
