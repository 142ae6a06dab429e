// SPDX-License-Identifier: Apache-2.0

// Package force carries a counterexample out on a booted kernel. A case of the museum says how a machine of the
// checker breaks; a [Case] here says the same of a real kernel, as a schedule: which virtual CPU runs up to which place,
// which stands still, which only answers interrupts. QEMU's gdb server does it, as a host may that takes a processor
// away from its guest. The console then shows how the kernel fares.
//
//   - A schedule is a text, cases/NAME.schedule: headers, then one step a line (case.go, step.go). It names functions
//     of the kernel and no addresses.
//   - machine.go carries steps out; condition.go looks at what stands still; tables.go reads the kernel's page tables.
//   - [Run] boots, forces, and says how it went: the kernel broke as the case says, outlived it, or a step could not be
//     forced, with the step and the reason.
package force
