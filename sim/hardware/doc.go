// SPDX-License-Identifier: Apache-2.0

// Package hardware executes plans on the CPUs of this machine: the call sites of a kernel's table
// in executable memory, with the table's own distances, cache lines and bytes; threads that call
// them, each on its CPU; real breakpoints; and membarrier as the round. poke/live patches; this
// package makes it a machine of CPUs with roles, whose counts can be held against a plan's.
//
//   - A Machine (machine.go) is in this process. Its threads are busy and call sites, or
//     isolated and spin in user code.
//   - A Child (child.go) is a machine in another process, for plans that may do anything
//     at all: that it dies of a signal is a finding.
//
// A signal is not a trap gate: breakpoints and rounds take the times of user space here.
package hardware
