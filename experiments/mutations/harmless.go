// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"slices"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
)

// harmless says why a protocol stays safe with a defect in it. The first one that
// holds is the explanation; each rests on something that can be taken away, and
// the test of this table takes it away and sees the protocol break.
type harmless struct {
	Name  string
	Why   string
	holds func(*check.Question) bool
}

var harmlessOnes = []harmless{
	{
		"nothing more to queue",
		"There is one site, and so one patch a batch: it is sorted, it has no neighbour, and it fits into any buffer.",
		func(q *check.Question) bool {
			return len(q.Model.Code.Sites) == 1 && is(q, "unsorted-batch", "overfull-batch", "shifted-batch")
		},
	},
	{
		"nobody runs",
		"The literal is written while every CPU stands still: nobody can load it between its halves.",
		func(q *check.Question) bool { return is(q, "misaligned-literal") && sends(q, poke.StopMachine) },
	},
	{
		"nobody is on the way",
		"A CPU comes to a standstill between two calls, never on its way from a site to the ops, and it fetches afresh " +
			"before it goes on. " +
			"Tasks that are preempted on that way need the grace period all the same (--preempt).",
		func(q *check.Question) bool {
			return is(q, "no-grace-period") && sends(q, poke.StopMachine) && !q.Preempt
		},
	},
	{
		"everybody fetches afresh anyway",
		"Every CPU fetches afresh when it is let go on, after the last store: the remote fence after each site comes to " +
			"nobody who could run the site meanwhile.",
		func(q *check.Question) bool { return is(q, "drop-sync-1") && sends(q, poke.StopMachine) },
	},
	{
		"the literal is data",
		"Nobody has to fetch a literal afresh: a CPU that runs the new branch loads it, and the store came first. " +
			"The kernel's round is a by-product of the helper that writes the literal; protocol word does without.",
		func(q *check.Question) bool {
			return is(q, "drop-sync-1") && q.Setup.Protocol.OneStore && shapeOf(q).Literals()
		},
	},
	{
		"one word, nothing behind the breakpoint",
		"A site is one word and the breakpoint covers all of it. Behind it only the literal changes, which is data: " +
			"the old branch may find either ops, for nop_ops can be called, and the new branch finds the new one.",
		func(q *check.Question) bool {
			return is(q, "drop-sync-1", "drop-sync-2") && q.Setup.Protocol.Traps && !shapeOf(q).Tail()
		},
	},
	{
		"nothing is promised",
		"The protocol says nothing of when other CPUs run the new text, so that a store that comes late breaks no " +
			"promise. Whichever of literal and branch comes first, " +
			"nop_ops can be called; and the grace period, which orders memory, stands before the ops is released.",
		func(q *check.Question) bool {
			return is(q, "no-fence") && q.Setup.Protocol.OneStore && !q.Setup.Protocol.Settles(shapeOf(q))
		},
	},
	{
		"one word, one store",
		"A site is one word, which one store replaces and one fetch reads: there is nothing in between that a breakpoint " +
			"could cover.",
		func(q *check.Question) bool { return is(q, "no-breakpoint") && !shapeOf(q).Tail() },
	},
	{
		"the head is read first",
		"No part of a fetch is older than the one before it. The tail is stored before the head: a CPU that reads the " +
			"new head reads the new tail behind it, " +
			"and one that reads a breakpoint reads no tail.",
		func(q *check.Question) bool {
			return is(q, "drop-sync-2") && behindBreakpoints(q) && q.Fetch == cpus.Coherent
		},
	},
	{
		"versions come whole",
		"A fetch reads all at once: the old instruction, a breakpoint with anything behind it, or the new instruction. " +
			"A store across a border of quadwords may be half done; here that is the tail behind a breakpoint.",
		func(q *check.Question) bool {
			return is(q, "drop-sync-1", "drop-sync-2") && behindBreakpoints(q) && q.Fetch == cpus.Atomic
		},
	},
}

// is tells whether the mutation is one of these.
func is(q *check.Question, mutations ...string) bool { return slices.Contains(mutations, q.Mutation) }

// whyHarmless is the explanation of a safe row that is mutated; nil if there is none.
func whyHarmless(q *check.Question) *harmless {
	return experiments.Find(harmlessOnes, func(h *harmless) bool { return h.holds(q) })
}
