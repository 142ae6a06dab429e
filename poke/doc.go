// SPDX-License-Identifier: Apache-2.0

// Package poke is the protocols by which text is changed under running CPUs.
//
// A plan is data. A Protocol (protocol.go) does not run: it compiles a batch of
// patches (patch.go) into a flat list of steps (step.go), which can be printed,
// counted, mutated (mutation.go), taken back (undo.go) and executed.
// A Patcher (patcher.go) is the state of one execution; it advances by one access
// to the Ground it stands on. Executor (executor.go) is the Ground of the live
// machine and runs updates on it: verification first, and on any failure every
// site is all old or all new.
package poke
