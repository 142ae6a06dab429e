// SPDX-License-Identifier: Apache-2.0

// Package tracers is the core of the function tracer: which tracers are called at each
// site, and which steps the kernel takes when a tracer attaches, detaches or traces other
// functions. It models kernel/trace/ftrace.c of Linux 7.1: the kernel's names, its flags,
// its decisions in its order, and its errors. Release holds how other releases differ.
//
//	errno.go     errors, with the kernel's numbers and the rule behind each
//	flags.go     a record's flags and reference count
//	ops.go       ops: the function that a tracer has called, and for which functions
//	decide.go    call, nop or modify? (ftrace_check_record)
//	target.go    the address that a site is to call, and the one that it calls now
//	core.go      Core: the list of ops, the records, their text
//	account.go   counting references, before anything is patched
//	global.go    the one function that sites without a literal share
//	step.go      the steps of a change, in the kernel's order
//	pass.go      an update pass: planned as steps, then executed
//	change.go    one change: its report, and how it is taken back
//	attach.go    attach, detach, change a filter
//	ipmodify.go  which ops may change the instruction pointer, and who shares with it
//	direct.go    direct calls: an ops for each trampoline
//	single.go    direct calls: one ops for all trampolines
//	call.go      a call of a function; frames and freed ops
//	task.go      the task that calls, and its guards against recursion
//	bpf.go       BPF trampolines on top: programs of one function share one
//	signature.go whether a program may be attached to functions of other types
//	multi.go     one program on many functions: merged, and proposed
//
// An attach is a plan. The core plans a change as data, executes it and reports its steps
// in order: trampolines, the common entries, the records, rounds and waits. Package
// kernels/ledger prices the steps by the mechanisms of a kernel's image; the records of a
// pass go through packages sched and poke. A change can be printed, counted, and made to
// fail at any record. The kernel stops at the first failure and traces nothing until the
// next boot. Core takes the whole change back; policy Kernel asks for the kernel's way.
//
// Core is not safe for concurrent use: the kernel holds ftrace_lock.
package tracers
