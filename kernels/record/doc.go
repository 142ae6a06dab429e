// SPDX-License-Identifier: Apache-2.0

// Package record boots a kernel and records the steps in which it patches its own
// text, in one total order: stores with the bytes before and after, rounds with
// every answer, traps and what became of them, and every CPU that stands still.
//
// The machine is that of package vm, and a debugger stops all of it at each step
// (package gdb), so that the order of the stops is the order of the steps. Which
// functions are stopped at follows from the image ([Watches]). The kernel's text is
// read before the first step and after the last: what changed there without a
// recorded store is in the recording, too.
package record
