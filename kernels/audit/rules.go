// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/kernels/image"
)

var rules = []Rule{
	{"try-get-desc", x86_64.Name, "the handler counts itself in a descriptor on a stack frame that is gone", tryGetDesc},
	{"unsorted-array", x86_64.Name, "a single poke is appended to the array whatever its address", unsortedArray},
	{"kprobe-disarm", x86_64.Name, "a kprobe's breakpoint is taken away, and no CPU is told", kprobeDisarm},
	{"static-call-fixup", x86_64.Name, "a module's static calls are fixed up without text_mutex", staticCallFixup},
	{"hit-while-brought-up", x86_64.Name, "no round waits for a CPU that is brought up; ftrace lets CPUs come meanwhile", broughtUp},
	{"nop10-other-trampoline", x86_64.Name, "a uprobe comes again with another call, while a thread stands before the old one",
		otherTrampoline},
	{"module-static-calls", x86_64.Name, "each static call of a module that is loaded is patched by itself, with rounds of its own",
		moduleStaticCalls},
	{"bpf-detach-pokes-each", x86_64.Name, "each BPF trampoline that goes is poked by itself, with rounds of its own", detachPokes},
	{"walk-of-freed-table", x86_64.Name, "a module's page is looked up without init_mm's lock, while its table is freed", freedTable},
	{"direct-functions-moved", "", "entries of direct_functions are moved to a larger table while they are looked up", directMoved},
	{"trampoline-freed-under-sleeper", "", "a BPF trampoline is freed while a task sleeps on its way through it", freedUnderSleeper},
	{"mismatched-ops", "", "one ops' function is called with another's data, by a task that is preempted in the common entry",
		mismatchedOps},
	{"multi-attach-free", "", "detaching from many functions fails, and frees the image that sites still call", multiAttachFree},
	{"arm64-jump-label", arm64.Name, "a static key is switched, and no other CPU fetches anew", jumpLabel},
	{"init-text-plt", arm64.Name, "a module's init text is patched through a PLT that it cannot reach", initTextPLT},
	{"online-before-fetch", riscv64.Name, "a CPU comes online and keeps what it has fetched while rounds passed over it", onlineBeforeFetch},
	{"local-fence-only", riscv64.Name, "patch_text_nosync fences no CPU but its own", localFenceOnly},
	{"late-store", riscv64.Name, "the interrupt of a remote fence overtakes the store before it", lateStore},
	{"lost-text-mutex", riscv64.Name, "ftrace patches without text_mutex", lostTextMutex},
}

// has and mended are verdicts with their evidence.
func has(format string, args ...any) (Verdict, string) { return Has, fmt.Sprintf(format, args...) }
func mended(format string, args ...any) (Verdict, string) {
	return Mended, fmt.Sprintf(format, args...)
}
func cannotTell(format string, args ...any) (Verdict, string) {
	return CannotTell, fmt.Sprintf(format, args...)
}

// calling is a verdict where a function calls one of some others: mended if it does.
func calling(k *image.Kernel, f string, others ...string) (Verdict, string) {
	if len(k.Parts[f]) == 0 {
		return cannotTell("%s is not in the image", f)
	}
	for _, other := range others {
		if k.Calls(f)[other] > 0 {
			return mended("%s calls %s", f, other)
		}
	}
	return has("%s does not call %s", f, others[0])
}

// first is the first of some functions that is in the image.
func first(k *image.Kernel, names ...string) string {
	for _, name := range names {
		if len(k.Parts[name]) > 0 {
			return name
		}
	}
	return ""
}

// multiAttachFree: whether an image that is still the current one is freed is a branch
// (0253073fb7d7), and no call.
func multiAttachFree(k *image.Kernel) (Verdict, string) {
	if f := first(k, "bpf_trampoline_multi_detach"); f != "" {
		return cannotTell("%s is there; what it frees when an update fails is a branch, and no call", f)
	}
	return mended("no bpf_trampoline_multi_detach")
}

// mismatchedOps: without a literal at each site, the common entry loads an ops and calls a
// function that is patched into it (Mark Rutland, March 2024).
func mismatchedOps(k *image.Kernel) (Verdict, string) {
	switch {
	case k.CallOps():
		return mended("each site has a literal that names its ops (no ftrace_call beside ftrace_caller)")
	case !k.Has("ftrace_call"):
		return cannotTell("no label ftrace_call")
	case k.Preempt() == "":
		return mended("tasks are not preempted in the kernel, as its banner says")
	}
	return has("ftrace_call is patched into the common entry, and tasks are preempted (%s)", k.Preempt())
}

// directMoved: d05cb470663a (6.7) copies the entries, and frees the old table behind RCU-tasks.
func directMoved(k *image.Kernel) (Verdict, string) {
	const register, add = "register_ftrace_direct", "ftrace_add_rec_direct"
	f := first(k, register, "register_ftrace_direct_multi")
	if f == "" {
		return mended("no %s: no function is called directly", register)
	}
	if k.Calls(f)["call_rcu_tasks"] > 0 {
		return mended("%s calls call_rcu_tasks, which frees the old table", f)
	}
	for _, g := range []string{f, add, "register_ftrace_direct_multi"} {
		if k.Calls(g)["dup_hash"] > 0 {
			return has("%s calls dup_hash, which moves the entries, and no call_rcu_tasks follows", g)
		}
	}
	return cannotTell("%s calls neither dup_hash nor call_rcu_tasks", f)
}

// freedUnderSleeper: e21aa341785c (5.12) counts images.
func freedUnderSleeper(k *image.Kernel) (Verdict, string) {
	const update = "bpf_trampoline_update"
	if f := first(k, "bpf_tramp_image_put", "bpf_tramp_image_free", "__bpf_tramp_image_put_deferred"); f != "" {
		return mended("%s is there: images are counted", f)
	}
	if first(k, update) == "" {
		return mended("no %s", update)
	}
	return has("%s is there, and nothing that counts images", update)
}
