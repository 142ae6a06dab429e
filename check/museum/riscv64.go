package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/poke"
)

// What went wrong on riscv64.
var riscv64Bugs = []Bug{
	{
		Name: "auipc-preempted", Number: "D26",
		Title:    "a task is preempted between the two instructions of a call",
		Versions: "to 6.2",
		Source:   "8547649981e6 \"riscv: ftrace: Fixup panic by disabling preemption\", Andy Chiu, January 2023",
		Story: "A task executes the auipc of a site's call and is preempted. " +
			"stop_machine stops CPUs, not tasks: the patcher changes both instructions meanwhile, to call something else. " +
			"The task goes on with the new jalr, whose lower bits it adds to the old upper ones.",
		Fix:   "8547649981e6: no function tracer in kernels that preempt; 6.16 came back to them with sites of one instruction",
		Want:  cpus.HalfPair,
		build: auipcPreempted,
	},
	{
		Name: "ipi-in-stop-machine", Number: "D27",
		Title:    "a remote fence by interrupts is sent to CPUs that have interrupts masked",
		Versions: "6.4 to 6.8, since 627922843235, on machines without firmware fences",
		Source:   "c97bf629963e \"riscv: Fix text patching when IPI are used\", Alexandre Ghiti, for 6.9",
		Story: "In stop_machine every CPU spins with interrupts off while one patches, and flushes the others' instruction caches after each site. " +
			"Where that flush is an interrupt nobody ever answers it.",
		Fix:   "c97bf629963e: no remote fence inside stop_machine; each CPU fences for itself before it goes on",
		Want:  cpus.Deadlock,
		build: ipiInStopMachine,
	},
	{
		Name: "patcher-runs-stale", Number: "D28",
		Title:    "the patching CPU executes a site that it has changed and not fetched afresh",
		Versions: "6.9 to 6.10-rc5",
		Source:   "edf2d546bfd6 \"riscv: patch: Flush the icache right after patching to avoid illegal insns\", Alexandre Ghiti, June 2024",
		Story: "The flush after each site has gone. The compiler has filled the site with nops of two bytes, and the patcher replaces them by nops of four. " +
			"Then the patcher itself calls that function, and fetches one half of an instruction old and the other new: an illegal instruction.",
		Fix:   "edf2d546bfd6: a local fence.i right after each write",
		Want:  cpus.TornFetch,
		build: patcherRunsStale,
	},
	{
		Name: "local-fence-only", Number: "D28",
		Title:    "who patches outside of stop_machine lost the remote fence",
		Versions: "6.10 to 6.11-rc",
		Source:   "e298a843bcfe \"riscv: Re-introduce global icache flush in patch_text_XXX()\", Alexandre Ghiti, 2024",
		Story: "patch_text_nosync fences the CPU that it runs on and no other any more. " +
			"What patches while everybody runs, static keys for one, still relies on it: another CPU keeps the old instruction.",
		Fix:   "e298a843bcfe: patch_text_nosync flushes everywhere again",
		Want:  cpus.StaleAfterCompletion,
		build: localFenceOnly,
	},
	{
		Name: "lost-text-mutex", Number: "D29",
		Title:    "two patchers share one mapping of text",
		Versions: "6.16-rc to rc6, since 5aa4ef955884",
		Source:   "e3f16d63d54e \"riscv: ftrace: Properly acquire text_mutex to fix a race condition\", 2025; seen on a 64-core SG2042 as \"ftrace faulted on modifying\"",
		Story: "Both patchers map the page of their site in the same slot (FIX_TEXT_POKE0), one of them without text_mutex. " +
			"One maps its page between the other's mapping and its store: the store goes to the wrong page, or nowhere.",
		Fix:   "e3f16d63d54e: ftrace takes text_mutex again before it patches, and gives it back behind",
		Want:  cpus.BrokenSite,
		build: lostTextMutex,
	},
	{
		Name: "late-store", Number: "D30",
		Title:    "the interrupt of a remote fence overtakes the store before it",
		Versions: "to 6.15",
		Source:   "ca358692de41 \"riscv: add a data fence for CMODX in the kernel mode\", Andy Chiu, 2025",
		Story: "The store to text waits in the store buffer; the store to the device that sends the interrupt does not. " +
			"The other CPU fences, fetches the old instruction once more, and keeps it: nothing will make it look again.",
		Fix:   "ca358692de41: fence w,o before the remote fence",
		Want:  cpus.StaleAfterCompletion,
		build: lateStore,
	},
}

func auipcPreempted(fixed bool) *scene {
	s := newScene(riscv64.Arch, isa.Pair, 2)
	s.m.Preempt = !fixed
	site := s.site()
	site.starts(site.calling(entryAt), uint64(entryAt))
	s.m.Attached = []uint64{uint64(entryAt), uint64(otherAt)}
	s.program([]poke.Patch{site.to(site.calling(otherAt), uint64(otherAt))}, s.update("stop-machine", 1))
	return s
}

func ipiInStopMachine(fixed bool) *scene {
	s := newScene(riscv64.Arch, isa.Pair, 2)
	s.m.Code.Traits.MaskedRounds = false // remote fences are interrupts like others
	s.m.Attached = []uint64{uint64(entryAt)}
	s.program([]poke.Patch{s.site().enabled(entryAt)},
		do(poke.Verify), do(poke.StopMachine), write(poke.Word), do(poke.Fence), when(!fixed, round(1)), do(poke.Resume))
	return s
}

// patcherRunsStale: the others stand still, and take no part.
func patcherRunsStale(fixed bool) *scene {
	const rec = textAt + 2 // no site is aligned to more than two bytes
	s := newScene(riscv64.Arch, isa.Pair, 1)
	site := s.siteAt(rec)
	filled := riscv64.Nop2 | riscv64.Nop2<<16
	site.starts(filled|filled<<32, nopOps)
	s.program([]poke.Patch{site.to(s.m.Code.Arch.Disabled(site.Site), nopOps)},
		do(poke.Verify), write(poke.Word), when(fixed, do(poke.Fence)))
	return s
}

// jal8 is jal x0, 8: the branch of a static key.
const jal8 isa.Text = 0x0080006F

func localFenceOnly(fixed bool) *scene {
	s := newScene(riscv64.Arch, isa.Word, 2)
	s.m.Code.Traits.CallOps = false // a static branch has no literal
	s.program([]poke.Patch{s.site().to(jal8, nopOps)},
		do(poke.Verify), write(poke.Word), do(poke.Fence), when(fixed, round(1)), do(poke.Settle))
	return s
}

func lostTextMutex(fixed bool) *scene {
	s := newScene(riscv64.Arch, isa.Word, 2)
	poker := func(locks bool, site site) {
		// The literal names the ops already: one store is enough to tell it.
		site.starts(s.m.Initial[site.i], firstOps)
		s.program([]poke.Patch{site.to(site.calling(entryAt), firstOps)},
			do(poke.Verify), when(locks, lock(poke.TextMutex)),
			do(poke.Map), write(poke.Word), do(poke.Fence), round(1),
			when(locks, unlock(poke.TextMutex)))
	}
	s.m.Attached = []uint64{firstOps}
	poker(fixed, s.site()) // ftrace, for a module that is being loaded
	poker(true, s.site())
	return s
}

func lateStore(fixed bool) *scene {
	s := newScene(riscv64.Arch, isa.Word, 2)
	site := s.site()
	site.starts(s.m.Initial[site.i], firstOps)
	s.m.Attached = []uint64{firstOps}
	s.program([]poke.Patch{site.to(site.calling(entryAt), firstOps)},
		do(poke.Verify), write(poke.Word), when(fixed, do(poke.Fence)), round(1),
		do(poke.Fence), do(poke.Settle)) // the store arrives in any case, late or not
	return s
}
