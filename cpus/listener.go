// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"slices"
	"time"

	"github.com/textpoke/textpoke/records"
)

// Listener is told the steps of a machine and its patchers. The goroutine that makes a step calls
// it when the step is over; on a live machine many goroutines call at the same time. Times are
// nanoseconds of the machine's clock, which stands at 0 when it is built. Every function may be
// nil.
type Listener struct {
	// Round: a CPU sends a round to so many targets; none has taken it yet. Ids
	// are unique.
	Round func(id uint64, from int, cause Cause, targets int, at int64)
	// Interrupt: a target has taken it and answered.
	Interrupt func(id uint64, cpu int, cause Cause, from, until int64)
	// Trap: a CPU ran into a breakpoint; hit: an entry was found for it.
	Trap func(cpu int, from, until int64, hit bool)
	// Step: a patcher on that CPU made a step of its plan, and Batch: it
	// published so many patches, 0: none any more.
	Step  func(cpu int, name string, from, until int64)
	Batch func(at int64, fill int)
}

// Tee tells all of these listeners, in this order. It leaves nil ones out, is nil where all are,
// and has every function otherwise.
func Tee(all ...*Listener) *Listener {
	if all = slices.DeleteFunc(slices.Clone(all), func(l *Listener) bool { return l == nil }); len(all) == 0 {
		return nil
	}
	return &Listener{
		Round: func(id uint64, from int, cause Cause, targets int, at int64) {
			for _, l := range all {
				if l.Round != nil {
					l.Round(id, from, cause, targets, at)
				}
			}
		},
		Interrupt: func(id uint64, cpu int, cause Cause, from, until int64) {
			for _, l := range all {
				if l.Interrupt != nil {
					l.Interrupt(id, cpu, cause, from, until)
				}
			}
		},
		Trap: func(cpu int, from, until int64, hit bool) {
			for _, l := range all {
				if l.Trap != nil {
					l.Trap(cpu, from, until, hit)
				}
			}
		},
		Step: func(cpu int, name string, from, until int64) {
			for _, l := range all {
				if l.Step != nil {
					l.Step(cpu, name, from, until)
				}
			}
		},
		Batch: func(at int64, fill int) {
			for _, l := range all {
				if l.Batch != nil {
					l.Batch(at, fill)
				}
			}
		},
	}
}

// Now is the time by the machine's clock, in nanoseconds since it was built.
func (m *Machine) Now() int64 { return int64(time.Since(m.built)) }

// Listener is the machine's listener, with every function; nil for none.
func (m *Machine) Listener() *Listener { return m.listener }

// watch follows one CPU for the listener.
type watch struct {
	*Listener
	began   int64 // when the interrupt or the trap did
	round   uint64
	cause   Cause
	trapped bool
}

// saw is told of each step which phase it began in.
func (w *watch) saw(r *runner, before Phase) {
	now := r.cpu.Phase
	if before == now {
		return
	}
	switch {
	case before == Interrupted && (now == Syncing || now == Answering):
		w.cause = r.cpu.Taken.Cause
		w.round = r.m.sender(r.cpu.Taken.Ticket).round // until answered, no other
	case before == Answering:
		if int(w.cause) < NumCauses {
			w.Interrupt(w.round, r.id, w.cause, w.began, r.m.Now())
		}
		w.began = r.m.Now() // another one may wait
	case now == Interrupted:
		w.began = r.m.Now()
	case now == Trapped:
		w.began, w.trapped = r.m.Now(), true
	case w.trapped && now <= lastBorder:
		w.Trap(r.id, w.began, r.m.Now(), before == Returning)
		w.trapped = false
	}
}

// Property is something that must hold in every run.
type Property string

// The properties.
const (
	TornFetch            Property = "torn-fetch"             // executed bytes that are not the old text, the new one or a breakpoint
	UnhandledBreakpoint  Property = "unhandled-breakpoint"   // a trap found no entry and was not forgiven
	WrongInstruction     Property = "wrong-instruction"      // a handler acts as another instruction than the site's old or new one
	StaleAfterCompletion Property = "stale-after-completion" // executed the old instruction after the update had promised otherwise
	HalfPair             Property = "half-pair"              // the halves of a pair come from different versions
	TornLiteral          Property = "torn-literal"           // called through half of a pointer
	UseAfterFree         Property = "use-after-free"         // called through a released ops
	MismatchedOps        Property = "mismatched-ops"         // a function was called with another one's ops
	LostCall             Property = "lost-call"              // a tracer missed a call it had been promised
	Deadlock             Property = "deadlock"               // no CPU and no patcher can move
	LockOrder            Property = "lock-order"             // two locks are taken in both orders
	Overflow             Property = "overflow"               // a batch holds more than its buffer
	Conservation         Property = "conservation"           // interrupts received are not those sent
	FreedTable           Property = "freed-table"            // a patcher finds a page by way of a page table that was freed
	WrongPage            Property = "wrong-page"             // a store to text goes to a page that is not the site's
	BrokenSite           Property = "broken-site"            // when all is over, a site has other text than the old or the new one
	StuckUpdate          Property = "stuck-update"           // whatever follows, an update never ends
	StuckCPU             Property = "stuck-cpu"              // or a CPU or preempted task never comes back between two calls
)

// Violation is one broken property, with the place, the bytes and the reason.
type Violation struct {
	Property Property
	CPU      int
	Site     int
	Addr     records.Addr
	Bytes    string // the bytes executed, or the pointer called through
	Why      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: cpu %d, site %d at %s, bytes %s: %s", v.Property, v.CPU, v.Site, v.Addr, v.Bytes, v.Why)
}

// keptViolations is how many violations are kept with all they say; the rest
// are only counted.
const keptViolations = 64

// Reports are the violations that a machine has seen.
type Reports struct {
	total uint64
	kept  []Violation
}

// Report records a violation.
func (r *Reports) Report(v Violation) {
	r.total++
	if len(r.kept) < keptViolations {
		r.kept = append(r.kept, v)
	}
}

// Violations is how many there were, and the first of them.
func (r *Reports) Violations() (total uint64, first []Violation) { return r.total, r.kept }
