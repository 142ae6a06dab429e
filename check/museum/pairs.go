package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// The ops and the function that is called with it, where they are two globals:
// function_trace_op, and the call inside ftrace_caller.
var pairCases = []Bug{
	{
		Name:     "pair-without-sync",
		Title:    "the ops and the function of a tracer are exchanged one right after the other",
		Versions: "none: the kernel sends a round in between",
		Source:   "ftrace_modify_all_code, kernel/trace/ftrace.c, Linux 7.1: smp_call_function(ftrace_sync_ipi) between function_trace_op and ftrace_update_ftrace_func",
		Story: "The call inside ftrace_caller goes to the list function. The patcher stores tracer B's ops and makes the call go to B's function. " +
			"A CPU has loaded A's ops before, and calls B's function with it. " +
			"For the round to be enough, nothing may come between the two on a CPU: here the entry masks interrupts, which no kernel's does; see mismatched-ops.",
		Fix:    "a round in between: each CPU answers it outside of the two",
		Want:   cpus.MismatchedOps,
		Tracer: true,
		build: func(fixed bool) *scene {
			return pair(when(fixed, round(2)), func(s *scene) { s.path = []cpus.Variant{cpus.SiteApartMasked} })
		},
	},
	{
		Name:     "pair-behind-rcu",
		Title:    "the function of a tracer is exchanged when every CPU has been outside of the entry, and not every task",
		Versions: "none: the kernel waits for less, and is broken; see mismatched-ops",
		Source:   "Mark Rutland on linux-kernel, March 2024 and July 2025: neither the round nor the detour over the list function waits for tasks that are preempted",
		Story: "The patcher stores tracer B's ops, and waits until every CPU has been outside of ftrace_caller before it makes the call go to B's function. " +
			"Interrupts do no harm any more. A task that was preempted with A's ops in its hands is on no CPU: it goes on behind all that, and calls B's function.",
		Fix:    "wait for tasks (RCU-tasks) instead. That takes about 100 ms; a literal that names the ops (CALL_OPS) takes nothing",
		Want:   cpus.MismatchedOps,
		Tracer: true,
		build: func(fixed bool) *scene {
			wait := do(poke.SynchronizeRCU)
			if fixed {
				wait = do(poke.GracePeriod)
			}
			return pair(wait, preempted)
		},
	},
}

// preempted: tasks may be, anywhere.
func preempted(s *scene) { s.m.Preempt = true }

// pair exchanges tracer A for tracer B where the two are apart, and waits between
// the ops and the function. The site is ftrace_call, its literal function_trace_op.
func pair(wait []poke.Step, how ...func(*scene)) *scene {
	const tracerA, tracerB, list = otherAt, thirdAt, entryAt
	s := newScene(arm64.Arch, isa.Word, 2)
	s.path = []cpus.Variant{cpus.SiteApart}
	for _, f := range how {
		f(s)
	}
	site := s.site()
	site.starts(site.calling(tracerA), uint64(tracerA))
	s.m.Attached = []uint64{uint64(tracerA), uint64(tracerB)}
	toList := site.to(site.calling(list), uint64(tracerA))
	toB := poke.Patch{
		Site: toList.Site, Addr: toList.Addr, Old: toList.New, New: site.calling(tracerB),
		OldOps: uint64(tracerA), NewOps: uint64(tracerB),
	}
	// Only x86 sends a round behind the first store. It keeps out what CPUs can do
	// here besides, which is to fetch the call of A's function after all that.
	s.program([]poke.Patch{toList, toB},
		do(poke.Verify), write(poke.Word), do(poke.Fence), round(1),
		second(do(poke.Verify)), second(write(poke.Literal)), do(poke.Fence), wait,
		second(write(poke.Word)), do(poke.Fence))
	return s
}

// mismatchedOps: what the kernel does between the two, and what it does where
// nothing is apart.
func mismatchedOps(fixed bool) *scene {
	return pair(round(2), preempted, func(s *scene) {
		if fixed {
			s.path = nil
		}
	})
}
