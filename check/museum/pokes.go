package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// What went wrong around the breakpoints of x86 and the handler that finds them.
var pokeBugs = []Bug{
	{
		Name: "torn-down-descriptor", Number: "A1",
		Title:    "the handler reads a batch that the patcher has taken away",
		Versions: "5.2 to 5.5-rc",
		Source:   "285a54efe386 \"x86/alternatives: Sync bp_patching update for avoiding NULL pointer exception\", Masami Hiramatsu, November 2019",
		Story: "The handler counts nobody: it looks whether bp_patching has entries, and then reads its vector. " +
			"After its third round the patcher sets the vector to NULL and the number of entries to 0. " +
			"A CPU runs into a breakpoint that is not of the batch, a kprobe's, before that, sees that there are entries, " +
			"and reads a vector that is gone.",
		Fix: "285a54efe386: no entries first, then one more round, which no CPU answers inside of a handler, and only then no vector; " +
			"1f676247f36a later replaced that by a count of the handlers",
		Want:  cpus.UseAfterFree,
		build: tornDownDescriptor,
	},
	{
		Name: "unsorted-array", Number: "A2",
		Title:    "a single poke is appended to the array whatever its address",
		Versions: "6.16-rc1 and rc2, since c8976ade0c1b",
		Source:   "2aebf5ee43bf \"x86/alternatives: Fix int3 handling failure from broken text_poke array\", Masami Hiramatsu, June 2025; reported by LKFT as oopses at random int3s",
		Story: "A static key has queued a site and let go of text_mutex for a moment. " +
			"Another poker takes it, appends a site with a lower address to the same array, and processes both. " +
			"The handler's binary search misses a breakpoint that is in the array.",
		Fix:   "2aebf5ee43bf: a single poke too goes through the check of the order, and flushes what is queued first",
		Want:  cpus.UnhandledBreakpoint,
		build: unsortedArray,
	},
	{
		Name: "overfull-array", Number: "A2",
		Title:    "a single poke is appended to an array that is full",
		Versions: "6.16-rc1 and rc2, since c8976ade0c1b",
		Source:   "2aebf5ee43bf \"x86/alternatives: Fix int3 handling failure from broken text_poke array\", Masami Hiramatsu, June 2025",
		Story: "The array of pokes is full when another poker appends one more: it is written behind the array's end, over the number of entries. " +
			"The kernel's array has 256 slots, this one has one.",
		Fix:   "2aebf5ee43bf: a single poke too goes through the check for a free slot, and flushes what is queued first",
		Want:  cpus.Overflow,
		build: overfullArray,
	},
	{
		Name: "nop-while-patching", Number: "A3",
		Title:    "a site behaves as a nop while it is being changed",
		Versions: "to 5.1",
		Source:   "9e298e860408 \"ftrace/x86_64: Emulate call function while updating in breakpoint handler\", Peter Zijlstra and Steven Rostedt, May 2019",
		Story: "The site of a livepatched function calls one trampoline and is changed to call another. " +
			"Meanwhile a CPU runs into the breakpoint, whose handler goes on behind the site: the function that was to be replaced runs.",
		Fix:   "9e298e860408, with 4b33dadf3766 and 2700fefdb2d9: the handler emulates the call",
		Want:  cpus.LostCall,
		build: nopWhilePatching,
	},
	{
		Name: "kprobe-disarm", Number: "A5",
		Title:    "a kprobe is freed while CPUs may still fetch its breakpoint",
		Versions: "to 5.4",
		Source:   "5c02ece81848 \"x86/kprobes: Fix ordering while text-patching\", Peter Zijlstra, 2019",
		Story: "Disarming writes the original byte back, takes the probe from the table, and frees it a grace period later. " +
			"Nothing of that makes anybody fetch afresh: a CPU still has the breakpoint, traps, and finds no probe. " +
			"Handlers until 6.2 looked at the text again and went back; without that, as since 6.3, it is fatal, and so it is here.",
		Fix:   "5c02ece81848: text_poke_sync after arming and after disarming",
		Want:  cpus.UnhandledBreakpoint,
		build: kprobeDisarm,
	},
	{
		Name: "ghost-int3", Number: "A11",
		Title:    "an emulated CPU traps on a breakpoint that has long been replaced",
		Versions: "6.3 and later, under QEMU 6.2 (TCG)",
		Source:   "oopses at random int3s on linux-kernel, January 2024, traced to QEMU 6.2; fatal since 8e791f7eba4c (6.3)",
		Story: "The patcher sends its three rounds and every CPU answers, but one answers without fetching afresh: " +
			"the emulator keeps its translation of the breakpoint. " +
			"When the batch is forgotten that CPU still traps, nobody knows the breakpoint, and the handler may not look again.",
		Fix:   "in the emulator: a serialised CPU fetches afresh. A retry in the handler was proposed to the kernel and rejected",
		Want:  cpus.UnhandledBreakpoint,
		build: ghostInt3,
	},
	{
		Name: "static-call-fixup", Number: "A12",
		Title:    "a module's static calls are fixed up without text_mutex",
		Versions: "5.19-rc, to rc6",
		Source:   "c27c753ea6fd \"x86/static_call: Serialize __static_call_fixup() properly\", Thomas Gleixner, July 2022; reported as a lockdep assertion",
		Story: "One patcher holds text_mutex and has its batch published. " +
			"A module that is being loaded fixes its trampolines up without the lock and publishes another batch in the same place. " +
			"A CPU runs into the first one's breakpoint and looks it up in the second one's batch. " +
			"The report is the assertion that text_mutex is held; this is what it guards against.",
		Fix:   "c27c753ea6fd: the fixup takes text_mutex",
		Want:  cpus.UnhandledBreakpoint,
		build: staticCallFixup,
	},
}

func tornDownDescriptor(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	s.m.Refs = int3.NoRef
	patched, probed := s.site(), s.site()
	probed.starts(x86_64.Nop5.Splice(0, x86_64.Int3Len, x86_64.Int3), nopOps)
	s.m.Code.Probed = 1 << probed.i
	s.m.Attached = []uint64{uint64(entryAt)}
	down := when(!fixed, do(poke.Clear), do(poke.Unpublish))
	if fixed {
		down = when(fixed, do(poke.Unpublish), round(4), do(poke.Clear))
	}
	s.program([]poke.Patch{patched.enabled(entryAt)},
		do(poke.Verify), do(poke.Publish),
		write(poke.Breakpoint), round(1), write(poke.Tail), round(2), write(poke.Head), round(3),
		down)
	return s
}

// twoSites are changed in the order of the given addresses, the first in the
// array when the second one comes.
func twoSites(flush bool, first, second records.Addr) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	patches := []poke.Patch{s.siteAt(first).enabled(entryAt), s.siteAt(second).enabled(entryAt)}
	s.m.Attached = []uint64{uint64(entryAt)}
	s.m.AsQueued = true
	batches := []poke.Range{{From: 0, To: 2}}
	if flush {
		batches = []poke.Range{{From: 0, To: 1}, {From: 1, To: 2}}
	}
	s.program(patches, s.update("breakpoint", 2, batches...))
	return s
}

func unsortedArray(fixed bool) *scene { return twoSites(fixed, textAt+textGap, textAt) }

func overfullArray(fixed bool) *scene {
	s := twoSites(fixed, textAt, textAt+textGap)
	s.m.Slots = 1
	return s
}

func nopWhilePatching(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	if s.m.Code.Always = true; !fixed {
		s.path = []cpus.Variant{cpus.HandlerSkips}
	}
	site := s.site()
	site.starts(site.calling(entryAt), nopOps)
	s.m.Attached = []uint64{uint64(entryAt), uint64(otherAt)}
	s.program([]poke.Patch{site.to(site.calling(otherAt), uint64(otherAt))}, s.update("breakpoint-global", 1))
	return s
}

// kprobeDisarm: the probe is published as long as handlers find it, and acts as
// the instruction that it covers, which it leaves as it was.
func kprobeDisarm(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	s.m.Refs = int3.NoRef // kprobes are looked up under RCU
	s.path = []cpus.Variant{cpus.MissFatal}
	site := s.site()
	s.program([]poke.Patch{site.to(x86_64.Nop5, nopOps)},
		do(poke.Verify), do(poke.Publish), write(poke.Breakpoint), when(fixed, round(1)),
		write(poke.Head), when(fixed, round(2)),
		do(poke.Unpublish), do(poke.SynchronizeRCU), do(poke.Clear))
	return s
}

func ghostInt3(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	s.path = []cpus.Variant{cpus.MissFatal}
	s.m.Code.Fetch = cpus.Atomic // an emulator translates an instruction in one go
	if !fixed {
		s.m.Code.Deaf = 1 << 1
	}
	site := s.site()
	s.m.Attached = []uint64{uint64(entryAt)}
	s.program([]poke.Patch{site.enabled(entryAt)}, s.update("breakpoint", 1))
	return s
}

// ret5 is what a static call's trampoline becomes that returns at once (retinsn,
// arch/x86/kernel/static_call.c).
var ret5 = isa.TextOf(0xC3, 0xCC, 0xCC, 0xCC, 0xCC)

func staticCallFixup(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 3)
	key, trampoline := s.site(), s.site()
	thunk, ok := x86_64.Jump(trampoline.Addr, entryAt)
	branch, ok2 := x86_64.Jump(key.Addr, otherAt)
	s.reaches(ok && ok2)
	trampoline.starts(thunk, nopOps)
	s.program([]poke.Patch{key.to(branch, nopOps)},
		lock(poke.TextMutex), s.update("breakpoint", 1), unlock(poke.TextMutex))
	s.program([]poke.Patch{trampoline.to(ret5, nopOps)},
		when(fixed, lock(poke.TextMutex)), s.update("breakpoint", 1), when(fixed, unlock(poke.TextMutex)))
	return s
}
