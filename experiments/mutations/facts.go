// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// fact is something that is known about real kernels or processors, and what the
// checker would have to answer to say the same.
type fact struct {
	Claim  string
	Source string

	about    func(*check.Question) bool
	Verdict  explore.Verdict
	Property cpus.Property // when unsafe

	// Differs says why rows may differ; for the report, where some do.
	Differs string
}

var facts = []fact{
	{
		Claim: "After a breakpoint was written every CPU must serialise before the bytes behind it change.",
		Source: "Intel SDM vol. 3A, \"Handling Self- and Cross-Modifying Code\"; the first step of text_poke_bp_batch, " +
			"arch/x86/kernel/alternative.c",
		about:   func(q *check.Question) bool { return is(q, "drop-sync-1") && behindBreakpoints(q) },
		Verdict: explore.Unsafe, Property: cpus.TornFetch,
		Differs: "The rule covers processors of which nothing more is promised. Where a CPU fetches the " +
			"whole instruction at once, which this fetch model assumes and no manual of Intel's promises, the round guards " +
			"against nothing.",
	},
	{
		Claim: "The middle round is \"very likely not necessary\" according to Intel, and is kept: \"better safe than " +
			"sorry (plus there's not only Intel)\".",
		Source:  "comment in text_poke_bp, fd4363fff3d9, Jiri Kosina, July 2013 (Linux 3.12); still there in 6.16",
		about:   func(q *check.Question) bool { return is(q, "drop-sync-2") && behindBreakpoints(q) },
		Verdict: explore.Safe,
		Differs: "These fetch models let a CPU see the new first byte before the new bytes behind it, as if the " +
			"processor fetched them from before the second store. They are weaker than what Intel is quoted with, which is " +
			"the coherent one, and are what the cautious half of the comment is about.",
	},
	{
		Claim: "A CPU that runs into a breakpoint whose batch has gone is forgiven: the handler looks at the text " +
			"again (until Linux 6.2).",
		Source:  "kprobe_int3_handler, arch/x86/kernel/kprobes/core.c, until 8e791f7eba4c (6.3) removed the second look",
		about:   func(q *check.Question) bool { return is(q, "drop-sync-3") && behindBreakpoints(q) },
		Verdict: explore.Safe,
		Differs: "The second look tells a breakpoint that has gone from one that is there, not whose it is. Without the " +
			"last round a CPU can miss the batch, and by the time it looks again the next update of the same site has " +
			"written its own breakpoint: " +
			"that is taken for a stray one. Kernels never tried: they have the last round.",
	},
	{
		Claim: "Since Linux 6.3 a breakpoint without an entry is fatal, so that the last round must reach everybody.",
		Source: "oopses at random int3s, linux-kernel, January 2024, where QEMU 6.2 kept old translations after the " +
			"round; 8e791f7eba4c",
		about:   func(q *check.Question) bool { return is(q, "drop-sync-3-no-recheck") && behindBreakpoints(q) },
		Verdict: explore.Unsafe, Property: cpus.UnhandledBreakpoint,
	},
	{
		Claim: "Several bytes must not be replaced under a running CPU without a breakpoint, whatever the order of the " +
			"stores.",
		Source: "Intel SDM vol. 3A, \"Handling Self- and Cross-Modifying Code\"; AMD APM vol. 2, 7.6.1",
		about: func(q *check.Question) bool {
			return shapeOf(q).Tail() && (is(q, "no-breakpoint") || q.Setup.Protocol.OneStore && q.Mutation == "")
		},
		Verdict: explore.Unsafe, Property: cpus.TornFetch,
	},
	{
		Claim: "A nop and a call of one aligned word may replace each other while other CPUs run them, with no breakpoint.",
		Source: "Arm ARM (DDI 0487) B2.2.5, \"Concurrent modification and execution of instructions\"; for riscv64 " +
			"Ziccif, and ftrace since Linux 6.16",
		about: func(q *check.Question) bool {
			return oneWord(q) && (is(q, "no-breakpoint") || q.Setup.Protocol.OneStore && q.Mutation == "")
		},
		Verdict: explore.Safe,
	},
	{
		Claim:   "The entries must be findable before a breakpoint is in the text.",
		Source:  "\"Corresponding read barrier in int3 notifier\", comment in text_poke_bp, fd4363fff3d9 (3.12)",
		about:   func(q *check.Question) bool { return is(q, "late-publish") && behindBreakpoints(q) },
		Verdict: explore.Unsafe, Property: cpus.UnhandledBreakpoint,
	},
	{
		Claim: "An address that is queued out of order is missed by the handler's bisection.",
		Source: "2aebf5ee43bf \"x86/alternatives: Fix int3 handling failure from broken text_poke array\", Masami " +
			"Hiramatsu, June 2025 (6.16-rc)",
		about:   func(q *check.Question) bool { return is(q, "unsorted-batch") && len(q.Model.Code.Sites) > 1 },
		Verdict: explore.Unsafe, Property: cpus.UnhandledBreakpoint,
	},
	{
		Claim:   "A patch that is queued in a full array is written behind its end.",
		Source:  "2aebf5ee43bf, as above",
		about:   func(q *check.Question) bool { return is(q, "overfull-batch") && len(q.Model.Code.Sites) > 1 },
		Verdict: explore.Unsafe, Property: cpus.Overflow,
	},
	{
		Claim:   "A literal across its alignment is seen in halves.",
		Source:  "b3f11af9b2ce \"arm64: ftrace: forbid CALL_OPS with CC_OPTIMIZE_FOR_SIZE\", Mark Rutland, 2023 (6.3)",
		about:   func(q *check.Question) bool { return is(q, "misaligned-literal") && q.Setup.Protocol.OneStore },
		Verdict: explore.Unsafe, Property: cpus.TornLiteral,
	},
	{
		Claim:  "A trampoline that is freed without a grace period is freed under those that sleep in it.",
		Source: "e21aa341785c \"bpf: Fix fexit trampoline.\", Alexei Starovoitov, March 2021 (5.12)",
		about: func(q *check.Question) bool {
			return is(q, "no-grace-period") && knownUnsafe(q) == "" && (q.Preempt || !sends(q, poke.StopMachine)) &&
				!pairPreempted(q)
		},
		Verdict: explore.Unsafe, Property: cpus.UseAfterFree,
	},
	{
		Claim:  "Rounds by interrupts inside stop_machine are never answered; those by firmware are.",
		Source: "c97bf629963e \"riscv: Fix text patching when IPI are used\", Alexandre Ghiti (6.10), of 627922843235 (6.4)",
		about: func(q *check.Question) bool {
			return q.Mutation == "" && sends(q, poke.StopMachine) && sends(q, poke.Sync) && !q.Model.Code.Traits.MaskedRounds
		},
		Verdict: explore.Unsafe, Property: cpus.Deadlock,
	},
	{
		Claim: "The two instructions of a pair cannot change one after the other under a running CPU: stop_machine is " +
			"there for them.",
		Source: "comment in ftrace_arch_code_modify_prepare, arch/riscv/kernel/ftrace.c, until Linux 6.15: \"can't be " +
			"patched while the kernel is running, so we need to use stop_machine()\"",
		about: func(q *check.Question) bool {
			return is(q, "no-stop") && pair(q) && len(q.Model.Code.Sites) > 1
		},
		Verdict: explore.Unsafe, Property: cpus.HalfPair,
		Differs: "Something else breaks in as few steps: without stop_machine nobody makes CPUs fetch afresh in " +
			"stop-machine, and " +
			"one executes the old pair once the update of a single site is over.",
	},
	{
		Claim: "stop_machine stops CPUs, not tasks: one that is preempted between the two instructions goes on with " +
			"half of each.",
		Source:  "8547649981e6 \"riscv: ftrace: Fixup panic by disabling preemption\", Andy Chiu, January 2023 (6.3)",
		about:   func(q *check.Question) bool { return q.Mutation == "" && pairPreempted(q) },
		Verdict: explore.Unsafe, Property: cpus.HalfPair,
	},
	{
		Claim: "A remote fence overtakes the stores before it, and the other CPU fetches the old instruction once more, " +
			"for good.",
		Source: "ca358692de41 \"riscv: add a data fence for CMODX in the kernel mode\", Andy Chiu, 2025 (6.16)",
		about: func(q *check.Question) bool {
			return is(q, "no-fence") && q.Model.Code.Traits.RoundAtEnd && q.Setup.Protocol.OneStore
		},
		Verdict: explore.Unsafe, Property: cpus.StaleAfterCompletion,
	},
}

// behindBreakpoints tells whether a question is about sites that a breakpoint covers
// in part, those of the instruction set that the sources are about.
func behindBreakpoints(q *check.Question) bool { return q.Setup.Protocol.Traps && shapeOf(q).Tail() }

// oneWord tells whether one store replaces a whole site.
func oneWord(q *check.Question) bool {
	return !shapeOf(q).Tail() && q.Model.Code.Len == q.Model.Code.Traits.FetchLen
}

// pair tells whether a site is two instructions.
func pair(q *check.Question) bool {
	return q.Setup.Protocol.Layout == isa.Pair && q.Model.Code.Several()
}

// pairPreempted tells whether tasks can be preempted between the two.
func pairPreempted(q *check.Question) bool { return q.Preempt && pair(q) }

// says tells whether a row says the same as the fact.
func (f *fact) says(r *check.VerdictRow) bool {
	return r.Verdict == f.Verdict && (r.Verdict != explore.Unsafe || r.Violation.Property == f.Property)
}
