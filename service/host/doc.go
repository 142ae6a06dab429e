// SPDX-License-Identifier: Apache-2.0

// Package host is this machine's own kernel as the machine that a service changes: the function
// tracer of one instance of tracefs, whose filter is what all clients want together.
//
// The truth is in the kernel. Its state outlives the server and not a reboot: at the start the
// instance is read, told of where it differs from the journal, and made to agree. Each update is
// one write of the filter. It carries a receipt: the interrupts that each CPU took meanwhile, and,
// where the kernel's image is known, those that were forecast.
//
//	host.go     the machine
//	records.go  the functions that can be traced, as a table
//	receipt.go  forecasts, and what was counted
package host
