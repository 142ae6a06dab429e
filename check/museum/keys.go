package museum

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
)

// What went wrong with static keys, whose branches are patched too.
var keyBugs = []Bug{
	{
		Name: "jump-label-early-return", Number: "A13.1",
		Title:    "enabling a static key returns before the branch is patched",
		Versions: "static_key_slow_inc to 4.6, static_key_enable to 4.13",
		Source: "4c5ea0a9cd02 \"locking/static_key: Fix concurrent static_key_slow_inc()\", Paolo Bonzini, June 2016; " +
			"1dbb6704de91 \"jump_label: Fix concurrent static_key_enable/disable()\", Paolo Bonzini, August 2017",
		Story: "A counts the key up and begins to patch its branch. " +
			"B looks at the counter, sees that the key is enabled already, and returns. " +
			"B's caller relies on the branch, and the CPUs still take the old one.",
		Fix:   "4c5ea0a9cd02 and 1dbb6704de91: while A patches the counter tells, and B takes jump_label_mutex before it returns",
		Want:  cpus.StaleAfterCompletion,
		build: jumpLabelEarlyReturn,
	},
	{
		Name: "arm64-jump-label", Number: "A14",
		Title:    "enabling a static key returns before the CPUs have fetched the branch",
		Versions: "arm64, since f6cc0c501649 removed stop_machine, to 6.11-rc1",
		Source:   "cfb00a357864 \"arm64: jump_label: Ensure patched jump_labels are visible to all CPUs\", Will Deacon, July 2024; seen as preempt notifiers that KVM missed",
		Story: "One word replaces the nop, and static_branch_enable returns. " +
			"Another CPU has fetched the nop ahead and nothing has made it fetch afresh since: it goes past the branch.",
		Fix:   "cfb00a357864: kick_all_cpus_sync at the end of the batch",
		Want:  cpus.StaleAfterCompletion,
		build: arm64JumpLabel,
	},
}

func jumpLabelEarlyReturn(fixed bool) *scene {
	s := newScene(x86_64.Arch, isa.Word, 3)
	site := s.site()
	branch, ok := x86_64.Jump(site.Addr, otherAt)
	s.reaches(ok)
	patches := []poke.Patch{site.to(branch, nopOps)}
	s.program(patches,
		lock(poke.JumpLabelMutex), do(poke.Raise), s.update("breakpoint", 1), unlock(poke.JumpLabelMutex))
	s.program(patches,
		do(poke.Expect), when(fixed, lock(poke.JumpLabelMutex), unlock(poke.JumpLabelMutex)), do(poke.Settle))
	return s
}

func arm64JumpLabel(fixed bool) *scene {
	s := newScene(arm64.Arch, isa.Word, 2)
	s.m.Code.Traits.CallOps = false // a static branch has no literal
	site := s.site()
	branch, ok := arm64.Jump(site.Addr, otherAt)
	s.reaches(ok)
	s.program([]poke.Patch{site.to(branch, nopOps)},
		do(poke.Verify), write(poke.Word), do(poke.Fence), when(fixed, round(1)), do(poke.Settle))
	return s
}
