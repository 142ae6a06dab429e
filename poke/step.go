// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

// Op is what a step does.
type Op uint8

// The steps that plans are made of.
const (
	Verify       Op = iota // read the sites, compare with the expected text
	Publish                // make the batch findable for trap handlers, take a reference
	Write                  // store a part of each patch
	Fence                  // dsb and isb: the stores are visible before anything follows; this CPU alone fetches afresh
	Sync                   // a round: the other CPUs fetch afresh and answer; see Traits.RoundSparesSelf for this one
	StopMachine            // every other CPU stands still with interrupts off
	Resume                 // they go on, each fetching afresh first
	Unpublish              // give the reference back: no handler can enter any more
	WaitHandlers           // until the last handler has left; then forget the batch
	GracePeriod            // until every task has been outside of all trampolines (synchronize_rcu_tasks)

	// Steps around the plans that protocols compile, in whole programs (program.go) and in plans
	// from files.
	SynchronizeRCU // until every CPU has been outside of all trampolines, preempted tasks or not
	Lock           // take a lock, wait while another patcher has it
	Unlock         // give it back
	Attach         // the ops that the patches lead to may be called
	Release        // the ops that the patches have led away from is freed
	Settle         // promise that no CPU executes replaced text; the checks' bookkeeping
	Clear          // forget the batch, even while handlers may still look at it
	Map            // map the page of a site where stores go to
	Raise          // tell other patchers something
	Expect         // until it was told
	Walk           // find a site's page in init_mm's page tables: the large page's entry, then the table's
	Split          // the large page becomes a table of small ones
	Collapse       // and one entry again, in the table's place
	Free           // that table is freed
)

var opNames = [...]string{"Verify", "Publish", "Write", "Fence", "Sync", "StopMachine", "Resume", "Unpublish",
	"WaitHandlers", "GracePeriod",
	"SynchronizeRCU", "Lock", "Unlock", "Attach", "Release", "Settle", "Clear", "Map", "Raise", "Expect",
	"Walk", "Split", "Collapse", "Free"}

func (o Op) String() string { return opNames[o] }

// stores tells whether a step of this kind is a store, which can wait in a buffer.
func (o Op) stores() bool {
	switch o {
	case Write, Publish, Unpublish, Attach, Release:
		return true
	}
	return false
}

// Part is what a Write stores of each patch.
type Part uint8

// The parts.
const (
	Breakpoint  Part = iota // the breakpoint over the first bytes
	Tail                    // the bytes behind the breakpoint
	Head                    // the bytes that the breakpoint covers
	Word                    // the whole site
	Literal                 // the pointer to the ops
	LiteralLow              // its lower half: a misaligned pointer takes two stores
	LiteralHigh             // its upper half
	Bytes                   // some bytes of the site, by one store: Step.Span says which
)

var partNames = [...]string{"breakpoint", "tail", "head", "word", "literal", "literal-low", "literal-high", "bytes"}

func (p Part) String() string { return partNames[p] }

// WritesLiteral tells whether the step stores pointers to ops, or halves of them.
func (s *Step) WritesLiteral() bool {
	return s.Op == Write && (s.Part == Literal || s.Part == LiteralLow || s.Part == LiteralHigh)
}

// Mutex is a lock that patchers take.
type Mutex uint8

// The locks.
const (
	TextMutex      Mutex = iota // text_mutex, kernel/extable.c: one patcher at a time
	FtraceLock                  // ftrace_lock, kernel/trace/ftrace.c
	JumpLabelMutex              // jump_label_mutex, kernel/jump_label.c
	HotplugLock                 // cpus_read_lock, kernel/cpu.c
	InitMM                      // init_mm's mmap_lock: patchers read, of whom text_mutex lets in one at a time; so it is a mutex here

	NumMutexes = int(InitMM) + 1
)

var mutexNames = [NumMutexes]string{"text_mutex", "ftrace_lock", "jump_label_mutex", "cpu_hotplug_lock", "init_mm"}

func (m Mutex) String() string { return mutexNames[m] }

// Span is a run of a site's bytes [From, To).
type Span struct{ From, To uint8 }

// String is the span as files spell it: "0-2", the last byte included.
func (s Span) String() string { return fmt.Sprintf("%d-%d", s.From, s.To-1) }

// parseSpan reads what String writes, and "3" for "3-3".
func parseSpan(text string) (s Span, ok bool) {
	first, last, ranges := strings.Cut(text, "-")
	if !ranges {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 3)
	to, err2 := strconv.ParseUint(last, 10, 3)
	return Span{uint8(from), uint8(to) + 1}, err == nil && err2 == nil && from <= to
}

// Step is one step of a plan.
type Step struct {
	Op       Op
	Part     Part  // of Write
	Span     Span  // of Write bytes
	Round    uint8 // of Sync: its number in the batch, from 1
	Mutex    Mutex // of Lock, Unlock
	Lazy     bool  // of Sync, StopMachine: leaves out CPUs in user space, which catch up when they enter the kernel
	Masked   bool  // of Walk: its CPU takes no interrupt between the two entries
	Undo     bool  // of Verify, Publish, Write, Attach, Release, Settle: towards the old text
	From, To int32 // the patches [From, To) that the step is about
}

// Name is the step without the patches that it is about: "Write tail".
func (s Step) Name() string {
	name := s.Op.String()
	switch s.Op {
	case Write:
		if name += " " + s.Part.String(); s.Part == Bytes {
			name += " " + s.Span.String()
		}
	case Sync:
		name += " " + strconv.Itoa(int(s.Round))
	case Lock, Unlock:
		name += " " + s.Mutex.String()
	}
	if s.Lazy {
		name += " " + lazyWord
	}
	if s.Masked {
		name += " " + maskedWord
	}
	return name
}

// String is the step in one line: "Write tail 0..255".
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Name())
	switch s.Op {
	case Verify, Publish, Write, Settle, Map:
		if s.To-s.From == 1 {
			fmt.Fprintf(&b, " %d", s.From)
		} else {
			fmt.Fprintf(&b, " %d..%d", s.From, s.To-1)
		}
		if s.Undo {
			b.WriteString(" back")
		}
	}
	return b.String()
}

// Emit takes the steps of a plan one after the other, so that a plan of millions
// of steps can be counted without being held.
type Emit func(Step)

// Range is a run of patches [From, To): a batch.
type Range struct{ From, To int }

// backWord ends a step that leads towards the old text.
const backWord = "back"

// ParseStep reads a step as String writes it, of a program that says all there is to
// say. A step that names no patches is about the first one.
func ParseStep(text string) (Step, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Step{}, fmt.Errorf("no step")
	}
	op := slices.Index(opNames[:], words[0])
	if op < 0 {
		return Step{}, fmt.Errorf("step %q: %w", words[0], notOneOf(words[0], opNames[:]))
	}
	st := Step{Op: Op(op), To: 1}
	args := words[1:]
	if st.Op.undoes() && len(args) > 0 && args[len(args)-1] == backWord {
		st.Undo, args = true, args[:len(args)-1]
	}
	fewest := 1
	if st.Op == Write && len(args) > 0 && args[0] == Bytes.String() { // the bytes come before the patches
		fewest = 3
	}
	if n := len(args); n >= fewest && (st.Op.undoes() || st.Op == Map) {
		if r, ok := ParseRange(args[n-1]); ok {
			st.From, st.To, args = int32(r.From), int32(r.To), args[:n-1]
		}
	}
	if reason := st.arguments(args); reason != "" {
		return Step{}, fmt.Errorf("%s: %s", text, reason)
	}
	return st, nil
}

// undoes tells whether steps of this kind lead towards one of a patch's two texts.
func (o Op) undoes() bool {
	switch o {
	case Verify, Publish, Write, Settle, Attach, Release:
		return true
	}
	return false
}

// ParseRange reads patches as steps spell them: "3", or "0..255".
func ParseRange(text string) (r Range, ok bool) {
	first, last, ranges := strings.Cut(text, "..")
	if !ranges {
		last = first
	}
	const bits = 16 // more than any program has
	from, err := strconv.ParseUint(first, 10, bits)
	to, err2 := strconv.ParseUint(last, 10, bits)
	return Range{int(from), int(to) + 1}, err == nil && err2 == nil && from <= to
}

// Count is what follows from a plan alone, before anything runs.
type Count struct {
	Steps  int
	Rounds int // Sync steps
	Lazy   int // of these, and of Stops, those that leave out CPUs in user space
	Stops  int // StopMachine steps
	Writes int // stores
	Graces int // GracePeriod steps
}

// RoundsOfBatch is how many rounds a batch takes whose longest site has so many patchable bytes.
func (p *Protocol) RoundsOfBatch(t isa.Traits, length int) int {
	var n Count
	one := func(yield func(Range) bool) { yield(Range{To: 1}) }
	p.Unfold(Shape{Traits: t, Len: length, Patches: 1}, one, n.Add)
	return n.Rounds
}

// RoundsPerBatch is what a batch takes that patches calls on x86_64, by the plan of the kernel's
// protocol: one round each after the breakpoints, the tails and the first bytes.
func RoundsPerBatch() int {
	return shipped()["breakpoint"].RoundsOfBatch(x86_64.Arch.Traits(), x86_64.SiteLen)
}

// Add counts one step.
func (c *Count) Add(s Step) {
	c.Steps++
	switch s.Op {
	case Sync:
		c.Rounds++
		if s.Lazy {
			c.Lazy++
		}
	case StopMachine:
		c.Stops++
		if s.Lazy {
			c.Lazy++
		}
	case Write:
		c.Writes += int(s.To - s.From)
	case GracePeriod:
		c.Graces++
	}
}

// IPIs is how many interrupts the online CPUs take; isolated ones are counted in
// online. The targets of a round are all online CPUs but the sender; so are those of
// the waking of the stoppers. For lazy rounds it takes the fewest: isolated CPUs stay
// in user space throughout, and none of them sends.
func (c *Count) IPIs(online, isolated int) int {
	return (c.Rounds+c.Stops)*(online-1) - c.Lazy*isolated
}
