// SPDX-License-Identifier: Apache-2.0

// Package uprobes tells what probes in programs send: an x86-64 kernel since 6.18
// replaces the breakpoint of a uprobe or USDT probe by a call when it is first hit,
// and every such replacement is three rounds to all CPUs, sent by the program that
// is probed.
//
//   - Program (program.go) reads where a program's USDT probes are, and what stands
//     there.
//   - Behaviour (release.go) says what a kernel release does with a site; Cost adds
//     sites and processes up.
package uprobes
