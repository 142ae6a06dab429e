package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// Literals that name a site's ops: in which order they and the branch change, and
// when the ops may be freed.
var literalCases = []Bug{
	{
		Name:     "branch-before-literal",
		Title:    "a site is enabled branch first, its literal second",
		Versions: "none: ftrace_make_call writes the literal first",
		Source:   "ftrace_make_call, arch/arm64/kernel/ftrace.c, Linux 7.1: ftrace_rec_set_ops before ftrace_modify_code",
		Story: "A site calls nobody, and its literal still names an ops that was freed long ago. " +
			"The patcher enables it for another tracer and writes the branch before the literal. A CPU executes the one and loads the other. " +
			"Had the literal named nop_ops it would have missed a call, and no more.",
		Fix:    "the literal first: whoever sees the branch sees the new ops",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  branchBeforeLiteral,
	},
	{
		Name:     "nop-before-literal",
		Title:    "a site is disabled nop first, its literal when the ops is gone",
		Versions: "none: ftrace_make_nop makes the literal name nop_ops first",
		Source: "ftrace_make_nop, arch/arm64/kernel/ftrace.c, Linux 7.1; that waiting for tasks makes nobody fetch afresh was learned from kprobes, " +
			"5c02ece81848 \"x86/kprobes: Fix ordering while text-patching\"",
		Story: "The patcher writes the nop, waits for every task, and frees the ops. A task can show that it is out of the entry by calling the scheduler, " +
			"which makes no CPU fetch afresh: one has the branch still, takes it, and loads the literal of old.",
		Fix:    "nop_ops into the literal first: who comes late calls that, which does nothing",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  nopBeforeLiteral,
	},
	{
		Name:     "ops-freed-at-once",
		Title:    "an ops is freed as soon as no site names it any more",
		Versions: "none for ops that are allocated (FTRACE_OPS_FL_DYNAMIC)",
		Source:   "ftrace_shutdown, kernel/trace/ftrace.c, Linux 7.1: synchronize_rcu_tasks_rude and synchronize_rcu_tasks before an ops may be freed",
		Story: "The site is disabled, its literal names nop_ops, and the ops is freed. " +
			"A CPU has loaded the literal before that, and calls through it now.",
		Fix:    "RCU-tasks in between: until every task has been outside of all trampolines",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  func(fixed bool) *scene { return opsFreed(when(fixed, do(poke.GracePeriod))) },
	},
	{
		Name:     "ops-freed-behind-rcu",
		Title:    "an ops is freed when every CPU has been outside of the entry, and not every task",
		Versions: "none; trampoline-freed-under-sleeper is what BPF did",
		Source:   "ftrace_shutdown, kernel/trace/ftrace.c, Linux 7.1",
		Story: "The site is disabled, and every CPU has been outside of all trampolines since. " +
			"A task that loaded the literal before was preempted there. It goes on on some CPU, and calls through what it has loaded.",
		Fix:    "RCU-tasks, which waits for tasks",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build: func(fixed bool) *scene {
			wait := do(poke.SynchronizeRCU)
			if fixed {
				wait = do(poke.GracePeriod)
			}
			return opsFreed(wait, preempted)
		},
	},
}

// theLiteral and theWord write one of the two, and make it visible before what
// follows.
func theLiteral() []poke.Step { return when(true, write(poke.Literal), do(poke.Fence)) }
func theWord() []poke.Step    { return when(true, write(poke.Word), do(poke.Fence)) }

func branchBeforeLiteral(fixed bool) *scene {
	const freed = uint64(thirdAt)
	s := newScene(arm64.Arch, isa.Word, 2)
	site := s.site()
	site.starts(s.m.Initial[site.i], freed)
	s.m.Attached = []uint64{freed, firstOps}
	s.program([]poke.Patch{site.to(site.calling(entryAt), firstOps)},
		do(poke.Verify), do(poke.Release),
		when(fixed, theLiteral()), theWord(), when(!fixed, theLiteral()))
	return s
}

func nopBeforeLiteral(fixed bool) *scene {
	s := newScene(arm64.Arch, isa.Word, 2)
	s.m.Code.Deaf = 1 << 1 // answers the grace period, and fetches nothing afresh
	site := s.site()
	site.starts(site.calling(entryAt), firstOps)
	s.m.Attached = []uint64{firstOps}
	s.program([]poke.Patch{site.to(s.m.Code.Arch.Disabled(site.Site), nopOps)},
		do(poke.Verify), when(fixed, theLiteral()), theWord(),
		do(poke.GracePeriod), do(poke.Release), when(!fixed, theLiteral()))
	return s
}

// opsFreed disables a site as the kernel does, waits, and frees the ops.
func opsFreed(wait []poke.Step, how ...func(*scene)) *scene {
	s := newScene(arm64.Arch, isa.Word, 2)
	for _, f := range how {
		f(s)
	}
	site := s.site()
	site.starts(site.calling(entryAt), firstOps)
	s.m.Attached = []uint64{firstOps}
	s.program([]poke.Patch{site.to(s.m.Code.Arch.Disabled(site.Site), nopOps)},
		do(poke.Verify), theLiteral(), theWord(), wait, do(poke.Release))
	return s
}
