// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

// protocols are all protocols but native, which is one of these by architecture.
var protocols = []*Protocol{
	{
		Name:    "breakpoint",
		Summary: "three phases behind breakpoints, three rounds a batch",
		Source: "text_poke_bp_batch, arch/x86/kernel/alternative.c, Linux 5.6 to 6.15; smp_text_poke_batch_finish since " +
			"6.16",
		Traps: true,
		open:  nothing, batch: threePhases, close: nothing,
	},
	{
		Name: "breakpoint-lazy",
		Summary: "three phases behind breakpoints; rounds leave out CPUs in user space, which catch up when they next " +
			"enter the kernel",
		Source: "Schneider, \"context_tracking,x86: Defer some IPIs until a user->kernel transition\", v7, " +
			"linux-kernel, November 2025; not merged, and v8 and v9 do otherwise",
		Traps: true,
		open:  nothing, batch: lazily(threePhases), close: nothing,
	},
	{
		Name:     "word",
		Summary:  "one atomic word a site, its literal first",
		Source:   "ftrace_make_call, arch/arm64/kernel/ftrace.c, Linux 6.3 and later",
		Batching: Whole, OneStore: true,
		open: nothing, batch: literalThenWord(false), close: lastRound,
	},
	{
		Name:     "stop-machine",
		Summary:  "every CPU stands still, one writes, all fetch afresh",
		Source:   "arch_ftrace_update_code, kernel/trace/ftrace.c; riscv64 as of c97bf629963e, Linux 6.10 to 6.15",
		Batching: Whole, Layout: isa.Pair,
		open: stop, batch: plainWrites, close: resume,
	},
	{
		Name:     "breakpoint-global",
		Summary:  "three phases behind breakpoints, three rounds for everything",
		Source:   "ftrace_replace_code, arch/x86/kernel/ftrace.c, Linux 3.5 to 5.5",
		Batching: Whole, Traps: true,
		open: nothing, batch: threePhases, close: nothing,
	},
	{
		Name:     "per-site",
		Summary:  "three phases behind a breakpoint, three rounds a site",
		Source:   "text_poke_bp, arch/x86/kernel/alternative.c, as jump labels used it until Linux 5.2",
		Batching: Single, Traps: true,
		open: nothing, batch: threePhases, close: nothing,
	},
	{
		Name:     "fence-per-write",
		Summary:  "every CPU stands still, a remote fence after each site",
		Source:   "patch_text_nosync under stop_machine, arch/riscv/kernel/ftrace.c, until Linux 6.9",
		Batching: Single, Layout: isa.Pair,
		open: stop, batch: writeAndRound, close: resume,
	},
}

// wordAndRounds is what riscv64 does since Linux 6.16: as word, with a remote
// fence after each literal too, since the literal is written by the helper for
// instructions (patch_text_nosync, arch/riscv/kernel/ftrace.c, Linux 7.1).
var wordAndRounds = &Protocol{
	Summary:  "one atomic word a site, its literal first, a round after each literal and one at the end",
	Source:   "ftrace_make_call and arch_ftrace_update_code, arch/riscv/kernel/ftrace.c, Linux 6.16 and later",
	Batching: Whole, OneStore: true,
	open: nothing, batch: literalThenWord(true), close: lastRound,
}

// nativeOf is what the instruction set's current kernel does.
func nativeOf(t isa.Traits) Protocol {
	p := *builtin("breakpoint")
	switch {
	case t.RoundPerLiteral:
		p = *wordAndRounds
	case t.FetchLen == t.BreakpointLen: // a site is one word, which one store replaces
		p = *builtin("word")
	}
	p.Name = Native
	return p
}

// Native is the name of whatever an architecture's current kernel does.
const Native = "native"

// Names lists the protocols.
func Names() []string {
	names := []string{Native}
	for _, p := range protocols {
		names = append(names, p.Name)
	}
	return names
}

// Protocols lists all but native, which is one of them by architecture.
func Protocols() []*Protocol { return slices.Clone(protocols) }

// Named finds a protocol; nil if there is none of that name.
func Named(name string, t isa.Traits) *Protocol {
	if name == Native {
		p := nativeOf(t)
		return &p
	}
	return builtin(name)
}

func builtin(name string) *Protocol {
	for _, p := range protocols {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func nothing(Shape, Range, Emit) {}

// threePhases is the breakpoint protocol: while a breakpoint covers the first
// bytes, the rest can change unseen. The literal, where there is one, is part of
// the rest. A phase that writes nothing sends no round (do_sync in
// smp_text_poke_batch_finish, arch/x86/kernel/alternative.c, Linux 6.16): the second
// where no site is longer than a breakpoint, the third where all stay breakpoints.
func threePhases(s Shape, r Range, emit Emit) {
	over := r.over(emit)
	round := func(n uint8) {
		fence(s, emit)
		over(Step{Op: Sync, Round: n})
	}
	over(Step{Op: Publish})
	fence(s, emit) // smp_wmb: who sees the breakpoint finds what is published (smp_rmb in the handler)
	over(Step{Op: Write, Part: Breakpoint})
	round(1)
	if s.Tail() {
		over(Step{Op: Write, Part: Tail})
	}
	if s.Literals() {
		over(Step{Op: Write, Part: Literal})
	}
	if s.Rest() {
		round(2)
	}
	if s.Head() {
		over(Step{Op: Write, Part: Head})
		round(3)
	}
	over(Step{Op: Unpublish})
	over(Step{Op: WaitHandlers})
}

// lazily lets rounds leave out CPUs in user space.
func lazily(batch func(Shape, Range, Emit)) func(Shape, Range, Emit) {
	return func(s Shape, r Range, emit Emit) {
		batch(s, r, func(st Step) {
			st.Lazy = st.Op == Sync
			emit(st)
		})
	}
}

// over emits steps about the whole range.
func (r Range) over(emit Emit) Emit {
	return func(s Step) {
		s.From, s.To = int32(r.From), int32(r.To)
		emit(s)
	}
}

func fence(s Shape, emit Emit) {
	if s.Traits.StoresBuffered {
		emit(Step{Op: Fence})
	}
}

// literalThenWord changes site by site. A CPU that runs the new branch finds the
// new ops; one that still runs the old branch finds either, and both are legal:
// nop_ops is callable.
func literalThenWord(rounds bool) func(Shape, Range, Emit) {
	return func(s Shape, r Range, emit Emit) {
		for i := r.From; i < r.To; i++ {
			over := Range{i, i + 1}.over(emit)
			if s.Literals() {
				over(Step{Op: Write, Part: Literal})
				fence(s, emit)
				if rounds {
					over(Step{Op: Sync, Round: 1})
				}
			}
			over(Step{Op: Write, Part: Word})
			fence(s, emit)
		}
	}
}

// lastRound makes remote CPUs fetch the new words where nothing else would.
func lastRound(s Shape, r Range, emit Emit) {
	if s.Traits.RoundAtEnd {
		r.over(emit)(Step{Op: Sync, Round: 2})
	}
}

func stop(_ Shape, _ Range, emit Emit)   { emit(Step{Op: StopMachine}) }
func resume(_ Shape, _ Range, emit Emit) { emit(Step{Op: Resume}) }

// plainWrites needs no order: nobody executes anything.
func plainWrites(s Shape, r Range, emit Emit) {
	over := r.over(emit)
	if s.Literals() {
		over(Step{Op: Write, Part: Literal})
	}
	over(Step{Op: Write, Part: Word})
	fence(s, emit)
}

func writeAndRound(s Shape, r Range, emit Emit) {
	plainWrites(s, r, emit)
	r.over(emit)(Step{Op: Sync, Round: 1})
}
