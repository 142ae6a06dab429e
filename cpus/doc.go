// SPDX-License-Identifier: Apache-2.0

// Package cpus is the machine whose running text is patched: text with
// versions, CPUs that fetch and execute it, and the interrupts that make them
// fetch afresh.
//
//   - Text (text.go) never overwrites: a store appends a version. A CPU may fetch
//     any version since it last synchronised, mixed as finely as the fetch model
//     says. Only Text knows of stale versions.
//   - CPU (cpu.go) is a small value that can be copied. Step (step.go,
//     interrupt.go) advances it by at most one access to the state that CPUs share,
//     the interface Shared (shared.go). A Chooser (chooser.go) makes every
//     nondeterministic choice.
//   - Machine (machine.go) is the Shared of real concurrency, made of atomics,
//     with one goroutine a CPU (goroutine.go), rounds of interrupts (round.go),
//     stop_machine, hot-unplug and the Ledger that counts
//     interrupts by CPU and cause.
//
// Lock order, outermost first: a CPU's seat, Machine.stopping, Machine.hotplug,
// Text.store.
package cpus
