// SPDX-License-Identifier: Apache-2.0

// Package live patches code that the threads of this process are executing. It runs the
// plans that poke compiles, with call sites in executable memory, real one-byte
// breakpoints, a trap handler that works as a kernel's does, and membarrier's sync-core
// command as the round.
//
//   - Text (text.go) is the sites, mapped twice: executable for threads, writable for
//     the patcher.
//   - Thread (thread.go) is a thread of the operating system that calls sites. Its
//     block is the only part of it that the trap handler reads.
//   - The handler (handler_amd64.s) looks breakpoints up in the batch that Ground
//     (ground.go), a poke.Ground, has published.
//   - Switches (switches.go) are call sites of a program's own that other goroutines call.
//     With them a program can be instrumented while it runs.
//   - A round (thread.go) is membarrier, and the wait until every thread has passed a
//     border between two calls: a signal is delivered with interrupts on, so that
//     membarrier alone may end between a trap and its handler, where a kernel's round
//     cannot.
//
// All of it is for Linux on x86-64; elsewhere Define says that there is none. One
// machine can be open in a process at a time: the handler serves one text.
package live
