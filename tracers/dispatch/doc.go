// SPDX-License-Identifier: Apache-2.0

// Package dispatch carries a call from a patched site to the tracers of its function, in
// each way that kernels have or that was proposed. The core (package tracers) says which
// ops are attached, what the text holds and which ops must be called. A way is a call path:
// the words that CPUs read between the site and the tracers. The core's stores change these
// words while CPUs read them.
//
// # Counts
//
// A [Task] with [Task.Count] counts what its calls take. A load is an object that the call reads
// because another object, or the site's literal, gave its address; all fields of one object
// count as one load. Instructions are fetched and take no load, and neither do the
// immediates in them. An instruction that can be patched is an atomic word here, and
// reading it is not counted. Saved registers, traps, and read-modify-writes of words that
// other CPUs change too have counts of their own.
//
// # Attaching
//
// [Way.Attach] and [Way.Detach] may be called while CPUs call. A call may still be on its
// way to an ops that was detached: wait until no task is inside of a call before you use the ops again.
// Package poke sends the rounds that text needs; this one sends none.
//
// Sources are the kernel's, by file and version. The kinds "intermediate" and "ops-trampoline" were
// turned down in Mark Rutland's mail of 2025-07-29 in "ftrace,bpf: Use single direct ops
// for bpf trampolines".
package dispatch
