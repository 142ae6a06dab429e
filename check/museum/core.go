package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// What went wrong in the core of ftrace.
var coreBugs = []Bug{
	{
		Name: "direct-functions-moved", Number: "B15",
		Title:    "entries of direct_functions are moved to a larger table while they are looked up",
		Versions: "to 6.6",
		Source:   "d05cb470663a \"ftrace: Fix modification of direct_function hash while in use\", Steven Rostedt, 6.7",
		Story: "A function that others trace too has a trampoline of its own, which the list function looks up. " +
			"The table grows: each entry is taken out of the old one and put into the new one, which is published then. " +
			"Who looks in between finds nobody, and the trampoline is not called. " +
			"Or it follows the link of an entry that is in the new table already; the table here has no links.",
		Fix:    "d05cb470663a: entries are copied, and the old table is freed behind RCU-tasks",
		Want:   cpus.LostCall,
		Tracer: true,
		build:  directFunctionsMoved,
	},
	{
		Name: "direct-address-kept", Number: "B20",
		Title:    "after a failure the table of direct calls says what the text does not",
		Versions: "to 6.2",
		Source:   "2a2d8c51defb \"ftrace: Fix issue that 'direct->addr' not restored in modify_ftrace_direct()\", Zheng Yejian, March 2023",
		Story: "modify_ftrace_direct writes the new address into its table and fails before the text is changed. " +
			"The table keeps the new address. The next update expects the site to call it, finds another call, and ftrace gives up (ftrace_bug).",
		Fix:    "2a2d8c51defb: the error path puts the old address back into the table",
		Want:   cpus.BrokenSite,
		Tracer: true,
		build:  directAddressKept,
	},
	{
		Name: "mismatched-ops", Number: "B22",
		Title:    "the function of one ops is called with another ops",
		Versions: "every architecture without CALL_OPS; open as of 7.1 on x86_64",
		Source:   "Mark Rutland on linux-kernel, March 2024, seen on 6.8-rc7 on x86-64 and on arm64 without CALL_OPS, both with full preemption; again in July 2025",
		Story: "ftrace_caller has loaded function_trace_op, that of tracer A, and is preempted, or merely interrupted, before its call. " +
			"The patcher makes the call go to the list function, stores tracer B's ops, interrupts every CPU, and makes the call go to B's function. " +
			"Whoever goes on now calls B's function with A's ops: an interrupt tells that a CPU has taken it, not that a task has made its call. " +
			"The shortest way here needs no preemption: the CPU is interrupted between the two, and answers every round before it goes back.",
		Fix: "none where the pair is global. Where sites have a literal that names their ops (CALL_OPS) the function is read from the same ops, " +
			"and that is what is shown",
		Want:   cpus.MismatchedOps,
		Tracer: true,
		build:  mismatchedOps,
	},
}

func directAddressKept(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	site := s.site()
	site.starts(site.calling(entryAt), uint64(entryAt))
	s.m.Attached = []uint64{uint64(entryAt), uint64(otherAt), uint64(thirdAt)}
	to := func(target records.Addr) poke.Patch { return site.to(site.calling(target), uint64(target)) }
	first, next := to(otherAt), to(thirdAt)
	if !fixed {
		next.Old, next.OldOps = first.New, first.NewOps
	}
	// The first update gets as far as the comparison.
	s.program([]poke.Patch{first, next}, do(poke.Verify), second(s.update("breakpoint", 1)))
	return s
}
