package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Direct calls: a site calls a trampoline itself, or the list function, which looks
// its trampoline up in direct_functions, or in the direct_call of its ops. The
// machine's literal is what is looked up; see cpus.SiteDirect.
var directCases = []Bug{
	{
		Name:     "direct-without-detour",
		Title:    "a trampoline is exchanged in the table only, while sites call it themselves",
		Versions: "none: modify_ftrace_direct takes sites over to the list function and back",
		Source:   "__modify_ftrace_direct, kernel/trace/ftrace.c, Linux 7.1: tmp_ops is registered before the table changes and unregistered behind",
		Story: "The only tracer of a function is a trampoline: its site calls it itself, and nobody asks the table. " +
			"A patcher writes the new trampoline into the table, waits for every task, and frees the old one. The site calls it still.",
		Fix: "two passes: a second ops that calls nobody (tmp_ops) makes every site go to the list function, which asks the table; " +
			"then the table changes; then the second ops goes, and every site calls the new trampoline itself",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  directWithoutDetour,
	},
	{
		Name:     "direct-gap",
		Title:    "a trampoline is exchanged by taking it away and attaching another one",
		Versions: "none; the documentation of modify_ftrace_direct speaks of such a gap, and its code has none",
		Source:   "modify_ftrace_direct, kernel/trace/ftrace.c, Linux 7.1",
		Story: "Every site is made a nop, and then made to call the new trampoline. " +
			"A function that is called in between is traced by neither.",
		Fix:    "the detour over the list function: at every moment a site leads to one of the two",
		Want:   cpus.LostCall,
		Tracer: true,
		build:  directGap,
	},
	{
		Name:     "direct-grace-too-early",
		Title:    "between the two passes the old trampoline is waited for, before the table has changed",
		Versions: "none: who modifies a direct call waits when all is over",
		Source: "__modify_ftrace_direct, kernel/trace/ftrace.c, Linux 7.1: tmp_ops is static and nothing is waited for; " +
			"the trampoline is its owner's to free, as of BPF behind RCU-tasks, e21aa341785c",
		Story: "No site calls the old trampoline any more when the patcher waits for every task. " +
			"But the list function still finds it in the table: a CPU has looked it up when the table changes, and calls it when it is freed.",
		Fix:    "wait behind the second pass: by then neither the text nor the table names it",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  directGraceTooEarly,
	},
	{
		Name:     "direct-freed-behind-rcu",
		Title:    "the old trampoline is freed when every CPU has been outside of it, and not every task",
		Versions: "none; trampoline-freed-under-sleeper is what BPF did",
		Source:   "e21aa341785c \"bpf: Fix fexit trampoline.\", Alexei Starovoitov, March 2021",
		Story: "Both passes are over, and every CPU has been outside of all trampolines since. " +
			"A task was preempted on its way to the old one, from the site itself or with what it has found in the table.",
		Fix:    "RCU-tasks, which waits for tasks",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build: func(fixed bool) *scene {
			wait := do(poke.SynchronizeRCU)
			if fixed {
				wait = do(poke.GracePeriod)
			}
			return modified(nil, wait, preempted)
		},
	},
	{
		Name:     "direct-call-torn",
		Title:    "the direct_call of an ops is written in two halves",
		Versions: "none: it is written by WRITE_ONCE",
		Source:   "__modify_ftrace_direct, kernel/trace/ftrace.c, Linux 7.1; the field is from dbaccb618fab, 6.4",
		Story: "A trampoline is out of a branch's reach: the site calls ftrace_caller, which jumps to the direct_call of the site's ops. " +
			"That is exchanged by two stores of four bytes. A CPU loads in between, and jumps to half of one address and half of the other.",
		Fix:    "one store of eight bytes (WRITE_ONCE)",
		Want:   cpus.TornLiteral,
		Tracer: true,
		build:  directCallTorn,
	},
	{
		Name:     "direct-table-late",
		Title:    "sites are patched before the table names their trampoline",
		Versions: "none: update_ftrace_direct_add publishes the table first",
		Source:   "update_ftrace_direct_add, kernel/trace/ftrace.c, Linux 7.1 (05dc5e9c1fe1)",
		Story: "A function that others trace too is added to the one ops of all direct calls: its site goes to the list function. " +
			"The pass over the sites is complete, and the table has no entry yet: the list function finds nobody to call.",
		Fix:    "the table first, then the sites",
		Want:   cpus.LostCall,
		Tracer: true,
		build:  directTableLate,
	},
	{
		Name:     "direct-entry-removed-first",
		Title:    "the table forgets a trampoline before the sites are patched",
		Versions: "none: update_ftrace_direct_del replaces the table behind the pass",
		Source:   "update_ftrace_direct_del, kernel/trace/ftrace.c, Linux 7.1 (8d2c1233f371)",
		Story: "A function leaves the one ops of all direct calls. Its entry goes first: " +
			"the site still goes to the list function, as was promised, and that finds nobody to call.",
		Fix:    "the sites first, then the table; who was on the way finds nobody, and nobody was promised any more",
		Want:   cpus.LostCall,
		Tracer: true,
		build:  directEntryRemovedFirst,
	},
}

// directScene is a site that A's trampoline has been attached to: it calls A
// itself, or the list function.
func directScene(starts records.Addr, how ...func(*scene)) (*scene, site) {
	s := newScene(x86_64.Arch, isa.Word, 2)
	s.path = []cpus.Variant{cpus.SiteDirect}
	for _, f := range how {
		f(s)
	}
	site := s.site()
	site.starts(site.calling(starts), trampolineA)
	s.m.Attached = []uint64{trampolineA}
	return s, site
}

// The old trampoline and the new one.
const (
	trampolineA = uint64(otherAt)
	trampolineB = uint64(thirdAt)
)

// passes are the patches that take a site from A to B, by way of some text.
func (p site) passes(via isa.Text) []poke.Patch {
	away := p.to(via, trampolineA)
	back := p.to(p.calling(thirdAt), trampolineB)
	back.Old = via
	return []poke.Patch{away, back}
}

// pass is one pass over the site, for the n-th patch.
func (s *scene) pass(n int) []poke.Step { return about(n, s.update("breakpoint", 1)) }

// modified exchanges A for B by way of the list function. early is waited for
// before the table changes, late before A is freed.
func modified(early, late []poke.Step, how ...func(*scene)) *scene {
	s, site := directScene(otherAt, how...)
	s.program(site.passes(site.calling(entryAt)),
		second(do(poke.Attach)), s.pass(0), early, second(write(poke.Literal)), s.pass(1), late, second(do(poke.Release)))
	return s
}

func directWithoutDetour(fixed bool) *scene {
	s, site := directScene(otherAt)
	s.program(site.passes(site.calling(entryAt)),
		second(do(poke.Attach)), when(fixed, s.pass(0)), second(write(poke.Literal)), when(fixed, s.pass(1)),
		do(poke.GracePeriod), second(do(poke.Release)))
	return s
}

func directGap(fixed bool) *scene {
	s, site := directScene(otherAt)
	s.m.Code.Always = true
	list, gap := site.passes(site.calling(entryAt)), site.passes(s.m.Code.Arch.Disabled(site.Site))
	pass := func(n int) []poke.Step {
		if !fixed {
			n += len(list)
		}
		return s.pass(n)
	}
	s.program(append(list, gap...),
		second(do(poke.Attach)), pass(0), second(write(poke.Literal)), pass(1), do(poke.GracePeriod), second(do(poke.Release)))
	return s
}

func directGraceTooEarly(fixed bool) *scene {
	return modified(when(!fixed, do(poke.GracePeriod)), when(fixed, do(poke.GracePeriod)))
}

// farTrampoline is no branch's to reach, and shares neither half with A's.
const farTrampoline uint64 = 0xffff_8000_8a5b_3040

func directCallTorn(fixed bool) *scene {
	s := newScene(arm64.Arch, isa.Word, 2)
	s.path = []cpus.Variant{cpus.SiteDirect}
	site := s.site()
	site.starts(site.calling(entryAt), trampolineA)
	s.m.Attached = []uint64{trampolineA, farTrampoline}
	store := write(poke.Literal)
	if !fixed {
		store = when(true, write(poke.LiteralLow), write(poke.LiteralHigh))
	}
	s.program([]poke.Patch{site.to(s.m.Initial[site.i], farTrampoline)}, store, do(poke.Fence))
	return s
}

func directTableLate(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	s.path = []cpus.Variant{cpus.SiteDirect}
	site := s.site()
	table := write(poke.Literal)
	s.program([]poke.Patch{site.to(site.calling(entryAt), trampolineA)},
		do(poke.Attach), when(fixed, table), s.pass(0), do(poke.Settle), when(!fixed, table))
	return s
}

func directEntryRemovedFirst(fixed bool) *scene {
	s, site := directScene(entryAt)
	table := write(poke.Literal)
	s.program([]poke.Patch{site.to(s.m.Code.Arch.Disabled(site.Site), nopOps)},
		undo(poke.Settle), when(!fixed, table), s.pass(0), when(fixed, table), do(poke.GracePeriod), do(poke.Release))
	return s
}

// directFunctionsMoved: the function's text does not change.
func directFunctionsMoved(fixed bool) *scene {
	s, site := directScene(entryAt)
	text := s.m.Initial[site.i]
	out, in := site.to(text, nopOps), site.to(text, trampolineA)
	in.OldOps = nopOps
	s.program([]poke.Patch{out, in},
		do(poke.Settle), when(!fixed, write(poke.Literal)), second(write(poke.Literal)))
	return s
}
