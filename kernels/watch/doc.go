// SPDX-License-Identifier: Apache-2.0

// Package watch tells what /proc/interrupts says of rounds as they happen: how
// many there were in each interval, who sent them, and how many one CPU took.
//
// Nothing is asked of the machine but two readings. Where that is allowed, the
// kernel's trace events say why, and who sent them ([Causes]).
package watch
