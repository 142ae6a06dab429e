// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
)

// Property is something that must hold in every run.
type Property string

// The properties.
const (
	TornFetch            Property = "torn-fetch"             // executed neither the old, the new, nor a breakpoint
	UnhandledBreakpoint  Property = "unhandled-breakpoint"   // a trap found no entry and was not forgiven
	WrongInstruction     Property = "wrong-instruction"      // a handler acts as what the site's breakpoint does not stand for
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
	BrokenSite           Property = "broken-site"            // a site is neither old nor new when all is over
	StuckUpdate          Property = "stuck-update"           // nothing that anybody can do lets an update end any more
	StuckCPU             Property = "stuck-cpu"              // or a CPU, or a preempted task, come back between two calls
)

// Violation is one broken property, with what a person needs to see why.
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
