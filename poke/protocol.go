// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"embed"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
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
	Locks    Locks      // who takes them, where there are several patchers
	File     string     // that it was read from, "" for a built-in one

	says *planFile // what its file says; nil for a protocol that was not read from one
}

// Locks says who keeps several patchers apart.
type Locks uint8

// The locks.
const (
	// LocksOfCaller: who calls holds text_mutex while text is changed, as text_poke_bp's
	// callers do (lockdep_assert_held in arch/x86/kernel/alternative.c), and ftrace_lock while
	// an ops is got rid of; unless the plan takes text_mutex itself.
	LocksOfCaller Locks = iota
	// LocksOfPlan: text_mutex is held where the plan takes it, and nowhere else.
	LocksOfPlan
)

// Stated tells whether the protocol says anything: one that was not read from a file, be
// it one of those that are shipped, has no step.
func (p *Protocol) Stated() bool { return p.says != nil }

// Shape is what steps depend on besides the patches.
type Shape struct {
	Traits  isa.Traits
	Len     int  // patchable bytes of the longest site
	Kept    bool // every site becomes a breakpoint and stays one
	Patches int  // of the whole update
	Detach  bool // the last user of an ops goes: wait before it is released

	Patchers int  // at work at the same time; 0 is one
	Switch   bool // sites call one ops, and go over to another

	// Entry, where set, is the length of one patch's site, and whether its new text
	// begins with a breakpoint: where sites are not all alike.
	Entry func(patch int) (length int, kept bool)
}

// Of is the shape of the patches of one batch.
func (s Shape) Of(r Range) Shape {
	if s.Entry == nil {
		return s
	}
	s.Len, s.Kept = 0, true
	for i := r.From; i < r.To; i++ {
		n, kept := s.Entry(i)
		s.Len, s.Kept = max(s.Len, n), s.Kept && kept
	}
	return s
}

// Literals tells whether sites of this shape have a literal that names their ops.
func (s Shape) Literals() bool { return s.Traits.CallOps && s.Len == s.Traits.FetchLen }

// Frees tells whether what enabled sites call goes with its tracer: an ops that a
// literal names, a trampoline of its own, or what a pair reaches. Where one word
// calls and no literal names anything, it calls the entry common to all
// (ftrace_caller), which stays.
func (s Shape) Frees() bool {
	return s.Traits.CallOps || s.Traits.OpsTrampolines || s.Len != s.Traits.FetchLen
}

// Tail tells whether a breakpoint leaves a part of sites of this shape uncovered.
func (s Shape) Tail() bool { return s.Len > s.Traits.BreakpointLen }

// Compile emits the plan of a whole update: the steps before, every batch, the steps
// after. Without patches it has no steps. Compile fails before the first step if the
// protocol cannot work on the instruction set: with a *ImpossibleError, or a *PlanError
// that names the line of a protocol from a file.
func (p *Protocol) Compile(s Shape, batches iter.Seq[Range], emit Emit) error {
	if err := p.check(s); err != nil {
		return err
	}
	if s.Patches > 0 {
		p.Unfold(s, batches, emit)
	}
	return nil
}

// Unfold is Compile without the question whether the protocol can work: for those
// who want to see what becomes of it. A *PlanError of Compile is nothing to see.
func (p *Protocol) Unfold(s Shape, batches iter.Seq[Range], emit Emit) {
	all := Range{0, s.Patches}
	sections := &p.says.sections
	emit(Step{Op: Verify, To: int32(s.Patches)})
	unroll(sections[onceBefore].lines, s, all, emit)
	for b := range batches {
		unroll(sections[everyBatch].lines, s.Of(b), b, emit)
	}
	unroll(sections[onceAfter].lines, s, all, emit)
	if s.Detach {
		emit(Step{Op: GracePeriod})
	}
}

// ImpossibleError says that a protocol cannot work on an instruction set, and
// which property it would violate every time.
type ImpossibleError struct {
	Protocol, Arch, Reason string
	Property               cpus.Property
	At                     string // file:line of a protocol from a file
}

func (e *ImpossibleError) Error() string {
	if e.At != "" {
		return fmt.Sprintf("%s: on %s: %s: %s", e.At, e.Arch, e.Reason, e.Property)
	}
	return fmt.Sprintf("protocol %s on %s: %s: %s", e.Protocol, e.Arch, e.Reason, e.Property)
}

// check finds steps that cannot be carried out on sites of a shape, and rounds that cannot be
// answered: CPUs that stand still have interrupts masked, so that only rounds that masking does not
// hold back reach them. Linux 6.4 to 6.9 on riscv64 machines without firmware fences hung like that
// (627922843235, fixed by c97bf629963e).
func (p *Protocol) check(s Shape) error {
	wrong, deadlock := p.says.fits(s)
	switch {
	case wrong != nil:
		wrong.Arch = s.Traits.Name
		return wrong
	case deadlock > 0 && !s.Traits.MaskedRounds:
		return p.deadlock(s, deadlock)
	}
	return nil
}

func (p *Protocol) deadlock(s Shape, line int) *ImpossibleError {
	e := &ImpossibleError{
		Protocol: p.Name, Arch: s.Traits.Name, Property: cpus.Deadlock,
		Reason: "it sends rounds inside stop_machine, and there they cannot reach CPUs that have interrupts masked",
	}
	if p.File != "" {
		e.At = fmt.Sprintf("%s:%d", p.File, line)
	}
	return e
}

// has tells whether the plan of one patch has a step for which which is true.
func (p *Protocol) has(s Shape, which func(Step) bool) (found bool) {
	p.one(s, func(st Step) { found = found || which(st) })
	return found
}

// one emits the plan of one patch; nothing where the protocol cannot work.
func (p *Protocol) one(s Shape, emit Emit) {
	s.Patches, s.Entry = 1, nil
	_ = p.Compile(s, func(yield func(Range) bool) { yield(Range{0, 1}) }, emit)
}

// ChangesLiterals tells whether the plan changes the literals that name the sites' ops.
func (p *Protocol) ChangesLiterals(s Shape) bool {
	return p.has(s, func(st Step) bool { return st.WritesLiteral() })
}

// Lazy tells whether the protocol has rounds that leave out CPUs in user space.
func (p *Protocol) Lazy(s Shape) bool {
	return p.has(s, func(st Step) bool { return st.Lazy })
}

// Path is what CPUs do at sites of a shape, and in the handler of their breakpoints.
func (p *Protocol) Path(s Shape) (cpus.Path, error) {
	path, wrong := p.says.pathOn(s, p.Lazy(s))
	if wrong != nil {
		wrong.Arch = s.Traits.Name
		return path, wrong
	}
	return path, nil
}

// StatesPath tells whether a file of the user's says what CPUs do, or some of it.
func (p *Protocol) StatesPath() bool {
	return p.File != "" && slices.ContainsFunc(p.says.paths[:], func(s section[pathLine]) bool { return s.line > 0 })
}

// Settles tells whether the protocol promises that, once it is through, no CPU
// executes old text: whether every CPU synchronises after its last store.
func (p *Protocol) Settles(s Shape) bool {
	settled := false
	p.one(s, func(st Step) {
		switch st.Op {
		case Write:
			settled = settled && (st.Part == Literal)
		case Sync, Resume:
			settled = true
		}
	})
	return settled
}

// Each protocol is a plan file.
//
//go:embed protocols/*.plan
var plans embed.FS

// Native is the name of the protocol of an architecture's current kernel.
const Native = "native"

// wordRounds is riscv64's native protocol. Users know it by no other name.
const wordRounds = "word-rounds"

// names are those of the protocols but native, which is one of these by architecture, in
// the order in which they are listed.
var names = []string{"breakpoint", "breakpoint-lazy", "word", "stop-machine", "breakpoint-global", "per-site",
	"fence-per-write"}

// ShippedPlan is a plan file that comes with the program.
type ShippedPlan struct {
	Name string // of the protocol, and of the file: breakpoint.plan
	Text []byte
}

// ShippedPlans are the built-in protocols as plan files, by name. Native is
// breakpoint on x86_64, word on arm64 and word-rounds on riscv64.
func ShippedPlans() (out []ShippedPlan) {
	for _, name := range slices.Sorted(slices.Values(append(slices.Clone(names), wordRounds))) {
		text, err := plans.ReadFile("protocols/" + name + ".plan")
		if err != nil {
			panic(fmt.Sprintf("embedded plan files: %v", err)) // they are part of the program
		}
		out = append(out, ShippedPlan{name, text})
	}
	return out
}

// shipped are the built-in protocols by name.
var shipped = sync.OnceValue(func() map[string]*Protocol {
	all := map[string]*Protocol{}
	for _, plan := range ShippedPlans() {
		p, err := ParseProtocol("", plan.Text)
		if err != nil {
			panic(fmt.Sprintf("embedded %s.plan: %v", plan.Name, err))
		}
		all[plan.Name] = p
	}
	return all
})

// nativeOf is what the instruction set's current kernel does.
func nativeOf(t isa.Traits) string {
	switch {
	case t.RoundPerLiteral:
		return wordRounds
	case t.FetchLen == t.BreakpointLen: // a site is one word, which one store replaces
		return "word"
	}
	return "breakpoint"
}

// Names lists the protocols.
func Names() []string { return append([]string{Native}, names...) }

// Protocols lists all but native, which is one of them by architecture.
func Protocols() []*Protocol {
	return spelling.Each(names, func(name string) *Protocol { return shipped()[name] })
}

// Named finds a protocol; nil if there is none of that name.
func Named(name string, t isa.Traits) *Protocol {
	switch {
	case name == Native:
		p := *shipped()[nativeOf(t)]
		p.Name = Native
		return &p
	case slices.Contains(names, name):
		return shipped()[name]
	}
	return nil
}
