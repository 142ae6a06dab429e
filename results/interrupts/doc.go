// SPDX-License-Identifier: Apache-2.0

// Package interrupts reads /proc/interrupts, compares two readings and explains
// the difference: how many rounds of interrupts there were, and who sent them.
//
// # Reading
//
// [Parse] takes a whole /proc/interrupts file or any number of its rows, from a
// file or as they stand in a mail. [ParseDiff] takes a text that holds one or
// several diffs of such files and gives each as a [Pair]. Both read line by
// line:
//
//   - Quote marks in front of a line (">", "|", also several, with or without
//     blanks between them) are taken off.
//   - The marks of a diff ("<" and ">", or "-" and "+" of a unified one) say
//     which side a row belongs to. A ">" is such a mark, and not one more level
//     of quoting, on a row that has exactly one ">" more than the "<" rows of
//     the same diff.
//   - A header ("CPU0 CPU2 ...") gives the CPUs: those that were offline are
//     missing from it. Without a header the CPUs are 0, 1, 2 and so on.
//   - A row is "NAME: count count ...", where NAME is a number, or "Err", or
//     upper-case letters, digits, "_" and "/", at least two of them. With a
//     header exactly one count a CPU is taken, without one all the leading
//     numbers; what follows is the description.
//   - A row with a single count and nothing behind it, among rows with several,
//     counts for the whole machine (ERR, MIS): see [Snapshot.Global].
//   - A row may be wrapped. The next line continues it if it starts with a
//     number and counts are still to come (with a header: fewer than its CPUs;
//     without: no description yet), or if it looks like the rest of a
//     description: the row has a line of 40 characters or more, and this one is at
//     most six words that begin with a letter, have a small letter among them,
//     and do not end in punctuation. A wrapped header
//     continues on the next line too.
//   - Every other line is skipped: prose, blank lines, "---", "12c12". So are
//     rows in prose between the diffs of a text that [ParseDiff] reads, unless
//     the diff is a unified one, where a row without a mark stands on both
//     sides.
//
// A row that is damaged is never skipped: counts that are negative, too big for
// 63 bits, more or fewer than the CPUs, cut off by the end of the text, or the
// same row twice are each a [ParseError] with file, line and value; so are
// control characters anywhere in the text.
//
// # Explaining
//
// A round of an update is one broadcast: the patching CPU interrupts every other
// online CPU and waits for all answers. Each round therefore delivers one
// interrupt to every CPU but its sender. With N CPUs, R rounds, and s_c of the
// rounds sent by CPU c, that CPU receives
//
//	d_c = R - s_c                         for every CPU c
//	sum of s_c = R                        every round has one sender
//
// Adding up the first line over all CPUs gives the conservation law: the
// interrupts summed over all CPUs equal the targets summed over all rounds,
//
//	sum of d_c = N*R - R = (N-1) * R
//
// and so the deltas alone give the rounds and their senders:
//
//	R = (sum of d_c) / (N-1),    s_c = R - d_c
//
// Deltas for which R is no integer, or some s_c is below 0 or above R, come from no sequence of
// broadcasts by any senders. [Explain] says which of these failed. The law also holds for a patcher
// that migrates between two rounds: the rounds are then shared among several s_c.
//
// The test is sharp for three CPUs and more: a single stray interrupt changes the sum by one, and
// it is no longer a multiple of N-1. With two CPUs any two counts pass, since each CPU simply
// counts the other one's rounds. A single CPU has no other to interrupt: its delta must be 0, and
// the rounds stay unknown.
//
// Real machines interrupt for other reasons too. [Near] says which rounds leave the
// least over.
//
// [Patches] goes one step further, from rounds to an interval of patches.
package interrupts
