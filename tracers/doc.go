// SPDX-License-Identifier: Apache-2.0

// Package tracers is the core of the function tracer: who is called at which
// site, and what changes when somebody attaches, detaches or traces other
// functions. It is kernel/trace/ftrace.c (Linux 7.1) as a model: the kernel's
// names, its flags, its decisions in its order, and its errors.
//
//	errno.go     errors, with the kernel's numbers and the rule behind each
//	flags.go     a record's flags and reference count
//	ops.go       ops: who wants to be called, for which functions
//	decide.go    call, nop or modify? (ftrace_check_record)
//	target.go    what a site is to call, and what it calls now
//	core.go      Core: the list of ops, the records, their text
//	account.go   counting references, before anything is patched
//	global.go    the one function that sites without a literal share
//	pass.go      an update pass as a list of steps: planned, then executed
//	change.go    one change: what it cost, and how it is taken back
//	attach.go    attach, detach, change a filter
//	ipmodify.go  who may change the instruction pointer, and who shares with whom
//	direct.go    direct calls: an ops for each trampoline
//	single.go    direct calls: one ops for all trampolines
//	call.go      what a call of a function runs into; frames and freed ops
//	guard.go     the recursion guard
//	bpf.go       BPF trampolines on top: programs of one function share one
//	signature.go whether a program may be attached to functions of other types
//	multi.go     one program on many functions: merged, and proposed
//
// A change is planned as data and then executed, so that it can be printed,
// counted (Report) and made to fail at any record. Where the kernel stops at the
// first failure and is dead until the next boot, Core takes the whole change
// back; Kernel asks for the kernel's way.
//
// Core is not safe for concurrent use: the kernel holds ftrace_lock.
package tracers
