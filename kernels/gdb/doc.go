// SPDX-License-Identifier: Apache-2.0

// Package gdb drives a machine through gdb's remote protocol, as QEMU's gdb server
// speaks it (gdb's manual, appendix "gdb Remote Serial Protocol"; QEMU's
// gdbstub). It sets breakpoints, reads and writes registers and memory, and lets
// all CPUs or some of them go on.
//
// A machine either stands still, all of it, or runs. While it stands still it is
// asked and changed; [Client.Continue], [Client.Only] and [Client.Step] let it run,
// and [Client.Wait] or [Client.WaitFor] tell where it stands still again. Dial
// stops it.
//
// A client has no goroutines of its own. It belongs to one goroutine; its context
// alone may end it from elsewhere.
package gdb
