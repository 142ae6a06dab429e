// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// page is what the templates show.
type page struct {
	Title  []string
	CPUs   []int
	Others []int
	Home   int
	Sites  []sitePage

	Pair, Literals, Publishes, Traps, Doubts, Stops, Buffered bool
	InterruptSyncs, TrapSyncs, MaskedRounds, Fatal            bool
	Counted, Always, MissSkips, LooksAgain, Refers            bool
	Handler                                                   []handlerStep
	Deaf, Probed                                              uint64

	Texts, Versions   int
	Numbers           []int
	OpsNames          []string
	OpsStored         []uint // that are attached or released
	SparesSelf        bool   // in a round the patcher's own CPU does not fetch afresh
	May, Has, Calls   string
	Names, Acts       string
	Ops               []string
	NopOps            uint
	Refs              int
	RefIndexes        []int
	AfterCall, NoTrap string
	Forget, ByRequest string
	Plan              []line
	Last              line // for the checks at the end of a run
	Leaves            []string
}

// handlerStep is a step of the handler before its end.
type handlerStep struct {
	Do    string
	Found bool // the address has been looked up before
	Last  bool // what was found decides what follows
}

// handler is the handler's steps but for its end.
func (x *export) handler() (steps []handlerStep) {
	program := x.code.Path.Program(cpus.InHandler)
	found := false
	for _, s := range program.Steps() {
		switch s {
		case cpus.DoTakeReference, cpus.DoLookUp, cpus.DoGiveBack:
			steps = append(steps, handlerStep{Do: s.String(), Found: found})
			found = found || s == cpus.DoLookUp
		}
	}
	steps[len(steps)-1].Last = true
	return steps
}

type sitePage struct {
	Number             int
	Versions, Literals []string
}

func (x *export) page() *page {
	t := x.code.Traits
	writes := func(which func(poke.Step) bool) bool { return slices.ContainsFunc(x.program.Plan, which) }
	p := &page{
		Title: x.title(), Home: cpus.Housekeeper(x.m.Roles),
		Pair: x.code.Several(), Literals: x.code.Literals(), Buffered: t.StoresBuffered,
		Publishes:      writes(func(s poke.Step) bool { return s.Op == poke.Publish }),
		Traps:          writes(handles) || slices.ContainsFunc(x.sites, site.traps),
		Stops:          writes(func(s poke.Step) bool { return s.Op == poke.StopMachine }),
		InterruptSyncs: t.InterruptSyncs, TrapSyncs: x.does(cpus.InHandler, cpus.DoSync), MaskedRounds: t.MaskedRounds,
		SparesSelf: t.RoundSparesSelf,
		Deaf:       x.code.Deaf, Probed: x.code.Probed, Fatal: x.does(cpus.OnMiss, cpus.DoFatal),
		Counted: x.m.Refs != int3.NoRef, Always: x.code.Always,
		MissSkips: x.does(cpus.OnMiss, cpus.DoSkip), LooksAgain: x.does(cpus.OnMiss, cpus.DoLookAgain),
		Refers: x.does(cpus.InHandler, cpus.DoTakeReference), Handler: x.handler(),
		NopOps: x.opsNumber(x.m.NopOps), Refs: 1, AfterCall: "calling",
	}
	for i := range x.m.Roles {
		p.CPUs = append(p.CPUs, i)
		if i != p.Home {
			p.Others = append(p.Others, i)
		}
	}
	if x.m.Refs == int3.PerCPU {
		p.Refs = len(x.m.Roles)
	}
	p.RefIndexes = spelling.Numbers(p.Refs)
	if p.ByRequest = "atomic { sync(me) }"; p.Deaf != 0 {
		p.ByRequest = "atomic { if :: deaf(me) :: !deaf(me) -> sync(me) fi }"
	}
	if p.Traps {
		p.NoTrap = "t != BREAKPOINT && "
	}
	if p.Literals {
		p.AfterCall, p.Doubts, p.Forget = "entered", true, "promise = 0; count = 0; "
	}
	p.Plan, p.Leaves = x.plan(), x.leaves()
	p.Plan, p.Last = p.Plan[:len(p.Plan)-1], p.Plan[len(p.Plan)-1]
	x.tables(p)
	return p
}

// does tells whether a section of the path has a step.
func (x *export) does(in cpus.Section, s cpus.PathStep) bool {
	return slices.Contains(x.code.Path.Program(in).Steps(), s)
}

// handles tells whether a step has to do with trap handlers.
func handles(s poke.Step) bool {
	switch s.Op {
	case poke.Publish, poke.Unpublish, poke.WaitHandlers, poke.Clear:
		return true
	}
	return s.Op == poke.Write && s.Part == poke.Breakpoint
}

// title says what the model is of.
func (x *export) title() []string {
	number := func(n int, what string) string {
		if n != 1 {
			what += "s"
		}
		return fmt.Sprintf("%d %s", n, what)
	}
	return []string{
		fmt.Sprintf("%s, %s, %s; %s fetches; %s lookups, references %s.", x.code.Traits.Name,
			number(len(x.m.Roles), "CPU"), number(len(x.sites), "site"), x.code.Fetch, x.m.Lookup, x.m.Refs),
	}
}
