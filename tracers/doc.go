// SPDX-License-Identifier: Apache-2.0

// Package tracers is the core of the function tracer: which tracers are called at each
// site, and which steps the kernel takes when a tracer attaches, detaches or traces other
// functions. It models kernel/trace/ftrace.c of Linux 7.1: the kernel's names, its flags,
// its decisions in its order, and its errors. Release holds how other releases differ.
//
//	record.go    a record's flags and count; call, nop or modify (ftrace_check_record)?
//	             The address that a site is to call, and the one that it calls now; which ops may
//	             change the instruction pointer
//	ops.go       ops: the function that a tracer has called, and for which functions;
//	             errors, with the kernel's numbers and the rule behind each
//	core.go      Core: the list of ops, the records, their text, and the one function that
//	             sites without a literal share
//	change.go    one change: its report, its steps in the kernel's order, the references that it
//	             counts, and how it is taken back
//	pass.go      an update pass: planned as steps, then executed
//	attach.go    attach, detach, change a filter
//	direct.go    direct calls: an ops for each trampoline, or one for all
//	call.go      a call of a function: the task and its guards, frames and freed ops
//	bpf.go       BPF trampolines on top: programs of one function share one
//	multi.go     one program on many functions: merged, and proposed
//
// An attach is a plan. The core plans a change as data, executes it and reports its steps
// in order: trampolines, the common entries, the records, rounds and waits. Package
// kernels/ledger prices the steps by the mechanisms of a kernel's image; the records of a
// pass go through packages sched and poke. A change can be printed, counted, and made to
// fail at any record. The kernel stops at the first failure and traces nothing until the
// next boot. Core takes the whole change back.
//
// Core is not safe for concurrent use: the kernel holds ftrace_lock.
package tracers
