// SPDX-License-Identifier: Apache-2.0

// Package watch tells what /proc/interrupts says of rounds as they happen: how
// many there were in each interval, who sent them, and how many one CPU took.
//
// Nothing is asked of the machine but two readings. Where that is allowed, BPF
// programs or the kernel's trace events say why, and who sent them ([Causes]).
//
//	watch.go     readings, and what they say
//	causes.go    why CPUs were interrupted, and by whom
//	programs.go  causes counted in the kernel, by BPF programs
//	code.go      these programs
//	events.go    causes read from trace events
//	trace.go     a timeline of rows
package watch
