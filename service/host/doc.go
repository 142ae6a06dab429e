// SPDX-License-Identifier: Apache-2.0

// Package host is this machine's own kernel as the machine that a service changes: the function
// tracer and the trace events of one instance of tracefs, and function_graph in a second one. Their
// filters are what all clients want together.
//
// The truth is in the kernel. Its state outlives the server and not a reboot: at the start the
// instance is read, told of where it differs from the journal, and made to agree. Each update is
// one write of a filter, and one for each event. It carries a receipt: the interrupts that each CPU took meanwhile, and,
// where the kernel's image is known, those that were forecast.
//
//	host.go     the machine
//	part.go     what one ops has in the kernel
//	records.go  the functions and events that can be traced, as tables
//	receipt.go  forecasts, and counted interrupts
//	trace.go    what clients' functions and events write, for all who read it
package host
