package poke

import (
	"context"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Ground is what a patcher works on. Each method is one access.
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

	// Publish makes patches findable for trap handlers.
	Publish(patches []Patch, undo bool)
	Unpublish()
	Drained() bool
	Clear()

	// Send starts a round, Answered tells whether it is over.
	Send(c cpus.Cause)
	Answered() bool
	// StopMachine and ResumeMachine, when they return, have.
	StopMachine()
	ResumeMachine()
	// SyncSelf makes the patcher's own CPU fetch afresh.
	SyncSelf()
}

// Patcher is the state of one execution of a plan.
type Patcher struct {
	Code    *cpus.Code
	Patches []Patch
	Plan    []Step

	At   int   // the step that comes next
	Done int32 // patches of it that are done
	sent bool  // its round has been sent

	// Fault, where set, may make a store fail before it is made.
	Fault func(st Step, patch int32) error

	buffer []store // stores that are not visible yet
}

// store is one store on its way to memory.
type store struct {
	site   int32
	off, n uint8
	text   isa.Text // or the ops
	data   bool     // a literal
}

// bufferedStores bounds the store buffer: about what current cores have.
const bufferedStores = 56

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
// wrapped in *StoreError; the state then says how far the plan got.
func (p *Patcher) Step(ctx context.Context, g Ground, ch cpus.Chooser) (Status, error) {
	if p.At == len(p.Plan) {
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
	case Sync:
		return p.request(cpus.Sync, g), nil
	case GracePeriod:
		return p.request(cpus.Quiesce, g), nil
	case WaitHandlers:
		if !g.Drained() {
			return Waits, nil
		}
		g.Clear()
	case Publish:
		g.Publish(p.Patches[st.From:st.To], st.Undo)
	case Fence:
		p.drain(g, 0)
		g.SyncSelf()
	case StopMachine:
		g.StopMachine()
	case Resume:
		g.SyncSelf()
		g.ResumeMachine()
	case Unpublish:
		g.Unpublish()
	}
	p.next()
	return Ran, nil
}

func (p *Patcher) next() { p.At, p.Done, p.sent = p.At+1, 0, false }

// request sends a round and waits for its answers. on_each_cpu runs the function
// on the sending CPU too.
func (p *Patcher) request(c cpus.Cause, g Ground) Status {
	switch {
	case !p.sent:
		g.Send(c)
		p.sent = true
		return Waits
	case !g.Answered():
		return Waits
	}
	if c == cpus.Sync {
		g.SyncSelf()
	}
	p.next()
	return Ran
}

// advance counts one patch of the current step.
func (p *Patcher) advance(st Step) {
	if p.Done++; st.From+p.Done >= st.To {
		p.next()
	}
}

// MismatchError says that a site does not hold what the patch expects.
type MismatchError struct {
	Addr      records.Addr
	Want, Got string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("site %s holds %s, expected %s", e.Addr, e.Got, e.Want)
}

// verify compares one site with what it must hold. x86_64 verifies every site
// before the first store (ftrace_replace_code, arch/x86/kernel/ftrace.c); arm64
// each before its own; riscv64 does not verify when it enables or disables
// (Linux 7.1). Here all do as x86_64 does.
func (p *Patcher) verify(st Step, g Ground) error {
	if st.From == st.To {
		p.next()
		return nil
	}
	patch := &p.Patches[st.From+p.Done]
	if got := g.Peek(int(patch.Site)); got != patch.Old {
		return &MismatchError{patch.Addr, patch.Old.Format(p.Code.Len), got.Format(p.Code.Len)}
	}
	g.Unsettle(int(patch.Site))
	p.advance(st)
	return nil
}

// StoreError says that a store failed.
type StoreError struct {
	Addr records.Addr
	Part Part
	Err  error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("write %s of site %s: %v", e.Part, e.Addr, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// ErrInjected is the failure of a store that a test asked for; a kernel's would
// be EPERM (aarch64_insn_patch_text_nosync) or EFAULT.
var ErrInjected = errors.New("injected write failure")

// write stores one part of one patch.
func (p *Patcher) write(st Step, g Ground, ch cpus.Chooser) error {
	i := st.From + p.Done
	patch := &p.Patches[i]
	if p.Fault != nil {
		if err := p.Fault(st, i); err != nil {
			return &StoreError{patch.Addr, st.Part, err}
		}
	}
	p.put(p.storeOf(st, patch, g), g, ch)
	p.advance(st)
	return nil
}

// storeOf is the store that a Write makes for one patch.
func (p *Patcher) storeOf(st Step, patch *Patch, g Ground) store {
	s := store{site: patch.Site, text: patch.text(st.Undo)}
	bp := uint8(p.Code.Traits.BreakpointLen)
	whole := uint8(p.Code.Len)
	ops := isa.Text(patch.ops(st.Undo))
	switch st.Part {
	case Breakpoint:
		s.n, s.text = bp, p.Code.Arch.Breakpoint()
	case Tail:
		s.off, s.n = bp, whole-bp
		s.text >>= 8 * isa.Text(bp)
	case Head:
		s.n = bp
	case Word:
		s.n = whole
	case Literal:
		s.data, s.text = true, ops
	case LiteralLow, LiteralHigh:
		off := 4 * int(st.Part-LiteralLow)
		s.data = true
		s.text = isa.Text(g.Literal(int(patch.Site))).Splice(off, 4, ops.Slice(off, 4))
	}
	return s
}

// put makes a store visible, now or later. Where stores are buffered one in four
// stays in the buffer, so that younger ones overtake it; stores to one site keep
// their order, as stores to one address do everywhere.
func (p *Patcher) put(s store, g Ground, ch cpus.Chooser) {
	if !p.Code.Traits.StoresBuffered {
		s.apply(g)
		return
	}
	for i := range p.buffer {
		if b := p.buffer[i]; b.site == s.site && b.data == s.data {
			b.apply(g)
			p.buffer = append(p.buffer[:i], p.buffer[i+1:]...)
			break
		}
	}
	if ch.Choose(cpus.ChooseDrain, 4) != 0 {
		s.apply(g)
		return
	}
	p.buffer = append(p.buffer, s)
	p.drain(g, bufferedStores)
}

// drain makes stores visible, the oldest first, until at most n are left.
func (p *Patcher) drain(g Ground, n int) {
	k := max(len(p.buffer)-n, 0)
	for _, s := range p.buffer[:k] {
		s.apply(g)
	}
	p.buffer = p.buffer[:copy(p.buffer, p.buffer[k:])]
}

func (s store) apply(g Ground) {
	if s.data {
		g.StoreLiteral(int(s.site), uint64(s.text))
		return
	}
	g.Store(int(s.site), int(s.off), int(s.n), s.text)
}
