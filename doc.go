// SPDX-License-Identifier: Apache-2.0

// Package textpoke is a laboratory for live text patching: what happens when a kernel
// rewrites tens of thousands of call sites while every CPU keeps executing them.
//
// The program is cmd/textpoke. Its parts can be used by themselves; each of these has
// an example:
//
//   - sim counts and executes updates on machines whose CPUs are goroutines, or in
//     virtual time.
//   - check and check/explore look at every interleaving of a small machine.
//   - poke is protocols: a batch of patches in, a plan out; cpus is the machine that
//     plans are executed on, int3 what its trap handlers search.
//   - records reads what can be patched: tables of real kernels, ELF files.
//   - sched/coordinator merges what many clients want into few updates.
//   - tracers says who is called at a site, and kernels what a kernel sends.
//   - results/interrupts takes readings of /proc/interrupts apart.
//
// The shortest useful program enables 1,000 call sites on a live machine and says
// what that took; it is the example below, and stands in the README.
package textpoke
