// SPDX-License-Identifier: Apache-2.0

// Package uprobes says which interrupts a probe in a program causes on x86-64. Since Linux
// 6.18 the kernel replaces the breakpoint of a uprobe or a USDT probe by a call when a
// process first hits it. Each replacement is three rounds to all CPUs, and the probed
// program sends them.
//
//   - Program (program.go) reads a program's USDT probes and the instruction at each.
//   - Behaviour (release.go) says what a kernel release does with a site; Cost adds up
//     sites and processes.
package uprobes
