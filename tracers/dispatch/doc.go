// SPDX-License-Identifier: Apache-2.0

// Package dispatch is how a call gets from a patched site to the tracers of its
// function, each way for real. The core (package tracers) says who is attached, what
// the text holds and who must be called; a way is the core's call path: the words
// that CPUs read between the site and its tracers, which the core's stores change
// while they are read.
//
// # What is counted
//
// A way says what a call costs without making it ([Way.Cost]) and counts it while it
// makes it (a [Task] with [Task.Count]); both are the same. Loads are objects
// that are read on the way because another one, or the site's literal, gave their
// address: fields of one object count as one load. What the site's own instruction
// says, and what a trampoline has as an immediate, takes no load: it is fetched. Here
// an instruction that can be patched is an atomic word, and reading that is not
// counted. Registers saved, traps, and read-modify-writes of words that other CPUs
// change too are counted beside.
//
// # Attaching
//
// [Way.Attach] and [Way.Detach] may be called while CPUs call. A detached ops may still
// be on somebody's way: who wants to reuse it waits with [Synchronize] first. The rounds
// that text needs are not sent here: package poke does that.
//
// Sources are the kernel's, by file and version. [Intermediate] and [OpsTrampoline] were
// turned down in Mark Rutland's mail of 2025-07-29 in "ftrace,bpf: Use single direct ops
// for bpf trampolines".
package dispatch
