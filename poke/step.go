package poke

import (
	"fmt"
	"strings"
)

// Op is what a step does.
type Op uint8

// The steps that plans are made of.
const (
	Verify       Op = iota // read the sites, compare with what is expected
	Publish                // make the batch findable for trap handlers, take a reference
	Write                  // store a part of each patch
	Fence                  // make the stores visible before anything that follows, fetch afresh here
	Sync                   // a round: every other CPU fetches afresh and answers
	StopMachine            // every other CPU stands still with interrupts off
	Resume                 // they go on, each fetching afresh first
	Unpublish              // give the reference back: no handler can enter any more
	WaitHandlers           // until the last handler has left; then forget the batch
	GracePeriod            // until every CPU has been outside of all trampolines
)

var opNames = [...]string{"Verify", "Publish", "Write", "Fence", "Sync", "StopMachine", "Resume", "Unpublish", "WaitHandlers", "GracePeriod"}

func (o Op) String() string { return opNames[o] }

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
)

var partNames = [...]string{"breakpoint", "tail", "head", "word", "literal", "literal-low", "literal-high"}

func (p Part) String() string { return partNames[p] }

// Step is one step of a plan.
type Step struct {
	Op       Op
	Part     Part  // of Write
	Round    uint8 // of Sync: the how-manieth of its batch, from 1
	Undo     bool  // of Publish, Write: towards the old text
	From, To int32 // the patches [From, To) that the step is about
}

// String is the step in one line: "Write tail 0..255".
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Op.String())
	switch s.Op {
	case Write:
		fmt.Fprintf(&b, " %s", s.Part)
	case Sync:
		fmt.Fprintf(&b, " %d", s.Round)
	}
	switch s.Op {
	case Verify, Publish, Write:
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
