// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Mutation is a defect put into a plan, to see what breaks.
type Mutation struct {
	Name    string
	Summary string // one line

	// Steps is an Emit that rewrites a plan on its way to the next one; nil leaves it as
	// it is. Each plan gets its own.
	Steps func(next Emit) Emit
	// Path is what CPUs do otherwise.
	Path []cpus.Variant
	// Filling is how batches get into the vector: AsQueued, whatever the patches' order.
	Filling Filling
	// Overfull: patches are queued whether or not a slot is left.
	Overfull bool
	// Around does so with a program, plans and what surrounds them. Only who executes
	// programs can tell what becomes of it.
	Around func(next Emit) Emit
	// holds tells whether the protocol has what the mutation breaks.
	holds func(p *Protocol, s Shape) bool
}

var mutations = []Mutation{
	dropSync(1, false), dropSync(2, false), dropSync(3, false), dropSync(3, true),
	{
		Name: "no-breakpoint", Summary: "write the new text over the old in one go",
		Steps: each(func(s Step, emit Emit) {
			switch {
			case s.Op == Write && s.Part == Breakpoint:
				s.Part = Word
			case s.Op == Write && (s.Part == Tail || s.Part == Head):
				return
			}
			emit(s)
		}),
		holds: traps,
	},
	{
		Name: "late-publish", Summary: "place the breakpoints first, make them findable after the first round",
		Steps: each(func(s Step, emit Emit) {
			if s.Op == Publish {
				return
			}
			emit(s)
			if s.Op == Sync && s.Round == 1 {
				emit(Step{Op: Publish, From: s.From, To: s.To, Undo: s.Undo})
			}
		}),
		holds: traps,
	},
	{
		Name: "unsorted-batch", Summary: "queue addresses in any order, as Linux 6.16-rc1 did for single pokes",
		Filling: AsQueued,
		holds:   queues,
	},
	{
		Name: "overfull-batch", Summary: "queue addresses behind the vector's end, as Linux 6.16-rc1 did too",
		Overfull: true,
		holds:    queues,
	},
	{
		Name: "shifted-batch", Summary: "queue each instruction one slot behind its address: handlers act as the neighbour's",
		Filling: Shifted,
		holds:   func(p *Protocol, _ Shape) bool { return p.Traps && p.Batching != Single },
	},
	{
		Name: "early-release", Summary: "take the batch away while its breakpoints are still in the text",
		Steps: each(func(s Step, emit Emit) {
			switch {
			case s.Op == Write && s.Part == Head && !s.Undo:
				emit(Step{Op: Unpublish, From: s.From, To: s.To})
				emit(Step{Op: WaitHandlers, From: s.From, To: s.To})
				emit(s)
			case s.Op == Unpublish || s.Op == WaitHandlers:
			default:
				emit(s)
			}
		}),
		holds: traps,
	},
	{
		Name: "no-fence", Summary: "let rounds and later stores overtake earlier stores",
		Steps: drop(func(s Step) bool { return s.Op == Fence }),
		holds: func(_ *Protocol, s Shape) bool { return s.Traits.StoresBuffered },
	},
	{
		Name:    "no-publish-fence",
		Summary: "let breakpoints overtake what handlers look up (without the smp_wmb of text_poke_bp_batch)",
		Steps:   dropBehind(Publish, Fence),
		holds:   func(p *Protocol, s Shape) bool { return s.Traits.StoresBuffered && traps(p, s) },
	},
	{
		Name:    "no-attach-fence",
		Summary: "let text that names an ops overtake what makes the ops",
		Around:  dropBehind(Attach, Fence),
		holds:   namesUnfenced,
	},
	{
		Name: "misaligned-literal", Summary: "literals across their alignment take two stores",
		Steps: each(func(s Step, emit Emit) {
			if s.Op != Write || s.Part != Literal {
				emit(s)
				return
			}
			s.Part = LiteralLow
			emit(s)
			s.Part = LiteralHigh
			emit(s)
		}),
		holds: func(_ *Protocol, s Shape) bool { return s.Literals() },
	},
	{
		Name: "no-grace-period", Summary: "release the ops while CPUs may be on their way to it",
		Steps: drop(func(s Step) bool { return s.Op == GracePeriod }),
		holds: func(*Protocol, Shape) bool { return true },
	},
	{
		Name: "no-stop", Summary: "write what stop_machine guards while every CPU runs",
		Steps: drop(func(s Step) bool { return s.Op == StopMachine || s.Op == Resume }),
		holds: func(p *Protocol, s Shape) bool { return p.has(s, func(st Step) bool { return st.Op == StopMachine }) },
	},
	{
		Name: "no-mutex", Summary: "let several patchers change text without text_mutex",
		Around: drop(func(s Step) bool { return (s.Op == Lock || s.Op == Unlock) && s.Mutex == TextMutex }),
		holds:  func(_ *Protocol, s Shape) bool { return s.Patchers > 1 },
	},
}

func traps(p *Protocol, _ Shape) bool { return p.Traps }

func queues(p *Protocol, _ Shape) bool { return p.Traps && p.Batching == Buffered }

// namesUnfenced tells whether sites that call a tracer already can come to name another ops before
// a fence of the plan's own has made that visible. While a site calls no tracer, CPUs do not read
// its literal before the fence behind it.
func namesUnfenced(p *Protocol, s Shape) bool {
	names, over := false, !s.Traits.StoresBuffered || !s.Switch
	p.one(s, func(st Step) {
		over = over || st.Op == Fence || st.Op == StopMachine
		names = names || !over && st.Op == Write && st.Part != Breakpoint
	})
	return names
}

// dropSync leaves out the n-th round of each batch.
func dropSync(n uint8, noRecheck bool) Mutation {
	m := Mutation{
		Name:    fmt.Sprintf("drop-sync-%d", n),
		Summary: fmt.Sprintf("leave out round %d of each batch", n),
		Steps:   drop(func(s Step) bool { return s.Op == Sync && s.Round == n }),
		holds: func(p *Protocol, s Shape) bool {
			return p.has(s, func(st Step) bool { return st.Op == Sync && st.Round == n })
		},
	}
	if noRecheck {
		m.Name += "-no-recheck"
		m.Summary += ", and a breakpoint without an entry is fatal at once (Linux 6.3 and later)"
		m.Path = []cpus.Variant{cpus.MissFatal}
		has := m.holds
		m.holds = func(p *Protocol, s Shape) bool { return p.Traps && has(p, s) }
	}
	return m
}

// each rewrites every step by itself.
func each(rewrite func(Step, Emit)) func(Emit) Emit {
	return func(next Emit) Emit { return func(s Step) { rewrite(s, next) } }
}

// drop leaves steps out.
func drop(which func(Step) bool) func(Emit) Emit {
	return each(func(s Step, emit Emit) {
		if !which(s) {
			emit(s)
		}
	})
}

// dropBehind leaves the steps of a kind out that follow one of another kind at once.
func dropBehind(first, second Op) func(Emit) Emit {
	return func(next Emit) Emit {
		last := second
		return func(s Step) {
			if s.Op != second || last != first {
				next(s)
			}
			last = s.Op
		}
	}
}

// AllMutations lists every mutation.
func AllMutations() []Mutation { return slices.Clone(mutations) }

// MutationNames lists the mutations.
func MutationNames() []string {
	return spelling.Each(mutations, func(m Mutation) string { return m.Name })
}

// Mutations lists those that mean something for a protocol, and leave a plan that
// can be carried out: a late publish needs a round to come after.
func (p *Protocol) Mutations(s Shape) []Mutation {
	var out []Mutation
	for _, m := range mutations {
		if !m.holds(p, s) {
			continue
		}
		var plan []Step
		p.one(s, m.Through(func(st Step) { plan = append(plan, st) }))
		if len(plan) == 0 || canEnd(plan, s) { // Compile says why there is none
			out = append(out, m)
		}
	}
	return out
}

// Mutation finds one by name. It fails where the protocol has nothing of the
// kind to break.
func (p *Protocol) Mutation(name string, s Shape) (Mutation, error) {
	var offered []string
	for _, m := range p.Mutations(s) {
		if m.Name == name {
			return m, nil
		}
		offered = append(offered, m.Name)
	}
	return Mutation{}, &NotOffered{Mutation: name, Protocol: p.Name, Arch: s.Traits.Name, Offered: offered}
}

// NotOffered says that a protocol has no mutation of a name, and which it has.
type NotOffered struct {
	Mutation, Protocol, Arch string
	Offered                  []string
}

func (n *NotOffered) Error() string {
	return fmt.Sprintf("mutation %q: protocol %s on %s has nothing of the kind; it offers %s",
		n.Mutation, n.Protocol, n.Arch, strings.Join(n.Offered, ", "))
}

// Passed collects the protocols without the mutation that is asked for, where others have it.
type Passed struct {
	fits  map[string]bool
	first map[string]error
	notes []string
}

// Take takes what came of one combination with a mutation. It tells whether that is to be
// left out; any other error comes back.
func (p *Passed) Take(mutation string, err error) (out bool, _ error) {
	if p.fits == nil {
		p.fits, p.first = map[string]bool{}, map[string]error{}
	}
	var lacks *NotOffered
	if !errors.As(err, &lacks) {
		p.fits[mutation] = p.fits[mutation] || err == nil
		return false, err
	}
	if p.first[lacks.Mutation] == nil {
		p.first[lacks.Mutation] = err
	}
	note := fmt.Sprintf("left out: %s on %s, which has no %s", lacks.Protocol, lacks.Arch, lacks.Mutation)
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
	return true, nil
}

// Notes are what was left out. A mutation that nothing offers is an error.
func (p *Passed) Notes() ([]string, error) {
	for _, name := range slices.Sorted(maps.Keys(p.first)) {
		if !p.fits[name] {
			return nil, p.first[name]
		}
	}
	return p.notes, nil
}

// OnPath mutates what CPUs do.
func (m Mutation) OnPath(p cpus.Path) cpus.Path {
	for _, v := range m.Path {
		p = p.With(v)
	}
	return p
}

// Through is an Emit that mutates what goes to the next one.
func (m Mutation) Through(emit Emit) Emit {
	if m.Steps == nil {
		return emit
	}
	return m.Steps(emit)
}

// OnProgram mutates a program: plans, and what surrounds them.
func (m Mutation) OnProgram(program []Step) (out []Step) {
	if m.Around == nil {
		return program
	}
	emit := m.Around(func(s Step) { out = append(out, s) })
	for _, s := range program {
		emit(s)
	}
	return out
}
