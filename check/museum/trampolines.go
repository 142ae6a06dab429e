package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
)

// What went wrong with the trampolines of BPF, which are made and freed while
// sites call them.
var trampolineBugs = []Bug{
	{
		Name: "trampoline-freed-under-sleeper", Number: "E31",
		Title:    "a trampoline is freed while a task sleeps on its way through it",
		Versions: "to 5.11",
		Source:   "e21aa341785c \"bpf: Fix fexit trampoline.\", Alexei Starovoitov, March 2021",
		Story: "A task has been called into a trampoline's image and sleeps. " +
			"Another program is attached: a new image is made, the site calls it, and when RCU has waited for every CPU the old image is freed. " +
			"RCU does not wait for the task. It goes on in memory that is somebody else's.",
		Fix:    "e21aa341785c: images are counted, and freed behind RCU-tasks, which waits for every task",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  trampolineFreedUnderSleeper,
	},
	{
		Name: "multi-attach-free", Number: "E32",
		Title:    "the error path frees a trampoline that sites still call",
		Versions: "the 7.2 cycle, before its release",
		Source:   "0253073fb7d7 and 7e71045b81d8, fixes of a use-after-free in multi_attach_free, of the series \"bpf: tracing_multi link\"",
		Story: "A program is attached to many functions at once. The first site calls its trampoline already when attaching the next one fails. " +
			"The error path frees the trampolines that were made, also the one that is linked.",
		Fix:    "0253073fb7d7 and 7e71045b81d8: what is linked is unlinked before it is freed",
		Want:   cpus.UseAfterFree,
		Tracer: true,
		build:  multiAttachFree,
	},
}

func trampolineFreedUnderSleeper(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	s.m.Preempt = true
	site := s.site()
	site.starts(site.calling(entryAt), uint64(entryAt))
	s.m.Attached = []uint64{uint64(entryAt)}
	wait := do(poke.SynchronizeRCU)
	if fixed {
		wait = do(poke.GracePeriod)
	}
	s.program([]poke.Patch{site.to(site.calling(otherAt), uint64(otherAt))},
		do(poke.Attach), s.update("breakpoint", 1), wait, do(poke.Release))
	return s
}

// multiAttachFree: nothing is left of the function that failed.
func multiAttachFree(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 2)
	patches := []poke.Patch{s.site().enabled(entryAt)}
	link := s.update("breakpoint", 1)
	s.program(patches,
		do(poke.Attach), link, when(fixed, poke.Backwards(link)), do(poke.GracePeriod), undo(poke.Release))
	return s
}
