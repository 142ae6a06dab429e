package poke

import (
	"fmt"
	"iter"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// Batching is how a protocol's patches are cut into batches.
type Batching uint8

// The ways.
const (
	Buffered Batching = iota // queued in a vector of TP_VEC_MAX slots
	Whole                    // one batch, however many patches
	Single                   // each patch by itself
)

// Protocol turns batches into steps.
type Protocol struct {
	Name     string
	Summary  string // one line
	Source   string // where the kernel does this
	Batching Batching
	Layout   isa.Layout // the shape that sites had in its time
	Traps    bool       // CPUs can run into its breakpoints
	OneStore bool       // relies on one store replacing a whole site at once

	open, batch, close func(Shape, Range, Emit)
}

// Shape is what steps depend on besides the patches.
type Shape struct {
	Traits  isa.Traits
	Len     int  // patchable bytes of a site
	Patches int  // of the whole update
	Detach  bool // the last user of an ops goes: wait before it is released
}

// Literals tells whether sites of this shape have a literal that names their ops.
func (s Shape) Literals() bool { return s.Traits.CallOps && s.Len == s.Traits.FetchLen }

// Compile emits the plan of a whole update: what comes before, every batch, what
// comes after. It fails, before the first step, where the protocol cannot work
// on the instruction set at all.
func (p *Protocol) Compile(s Shape, batches iter.Seq[Range], emit Emit) error {
	if err := p.check(s); err != nil {
		return err
	}
	all := Range{0, s.Patches}
	emit(Step{Op: Verify, To: int32(s.Patches)})
	p.open(s, all, emit)
	for b := range batches {
		p.batch(s, b, emit)
	}
	p.close(s, all, emit)
	if s.Detach {
		emit(Step{Op: GracePeriod})
	}
	return nil
}

// ImpossibleError says that a protocol cannot work on an instruction set, and
// which property it would violate every time.
type ImpossibleError struct {
	Protocol, Arch, Reason string
	Property               cpus.Property
}

func (e *ImpossibleError) Error() string {
	return fmt.Sprintf("protocol %s on %s: %s: %s", e.Protocol, e.Arch, e.Reason, e.Property)
}

// check finds rounds that nobody could answer: CPUs that stand still have
// interrupts masked, so that only rounds that masking does not hold back reach
// them. Linux 6.4 to 6.8 on riscv64 machines without firmware fences hung like
// that (627922843235, fixed by c97bf629963e).
func (p *Protocol) check(s Shape) error {
	if s.Traits.MaskedRounds {
		return nil
	}
	stopped, deadlock := false, false
	watch := func(st Step) {
		switch st.Op {
		case StopMachine:
			stopped = true
		case Resume:
			stopped = false
		case Sync:
			deadlock = deadlock || stopped
		}
	}
	p.open(s, Range{0, 1}, watch)
	p.batch(s, Range{0, 1}, watch)
	if deadlock {
		return &ImpossibleError{
			p.Name, s.Traits.Name,
			"it sends rounds inside stop_machine, and there they cannot reach CPUs that have interrupts masked", cpus.Deadlock,
		}
	}
	return nil
}

// Settles tells whether the protocol promises that, once it is through, no CPU
// executes old text: whether every CPU synchronises after its last store.
func (p *Protocol) Settles(s Shape) bool {
	settled := false
	one := func(yield func(Range) bool) { yield(Range{0, 1}) }
	s.Patches = 1
	_ = p.Compile(s, one, func(st Step) {
		switch st.Op {
		case Write:
			settled = settled && (st.Part == Literal)
		case Sync, Resume:
			settled = true
		}
	})
	return settled
}
