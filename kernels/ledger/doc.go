// SPDX-License-Identifier: Apache-2.0

// Package ledger says which interrupts a kernel sends when a tracer is switched on or off,
// cause by cause, and holds measurements of such kernels.
//
// The numbers follow from a kernel's image: the branches of its static keys, the sites of
// its static calls, its tracepoints, and the mechanisms that its code shows (package
// kernels/image). A Replay carries an action out: tracepoints, keys and static calls by
// the rules of this package, ops by the core in package tracers, whose steps it prices.
//
//	action.go     the actions, by name
//	state.go      the state before an action, told or read from a running machine
//	replay.go     tracepoints, keys, static calls, command lines
//	functions.go  the function tracer of a replay: its core and its records
//	client.go     kprobes, BPF programs, function_graph: the requests of each to the core; probes in programs
//	price.go      a step of the core, priced by the image's mechanisms
//	module.go     loading and unloading modules
//	whatif.go     mechanisms that a kernel does not have
//	kernel.go     kernels, ledgers, and the interrupts of a CPU
//	attach.go     attaching to many functions: steps, interrupts and work
//	time.go       the time that such work takes, by a calibration
//	facts.go      facts of an image, and their files
//	open.go       the kernel of a name or a file
//	measured.go   interrupts that booted kernels took
//
// Each number says how it is known (Basis) and between what bounds it lies (Range).
package ledger
