// SPDX-License-Identifier: Apache-2.0

// Package emulate executes functions of an x86-64 kernel's image, instruction by
// instruction, on a memory of its own: what the image holds, zeros elsewhere, and what was
// stored. Hooks stand in for functions that reach beyond the code, such as those that
// interrupt other CPUs. An instruction that it does not know ends the call with an error;
// nothing is guessed.
//
// It knows the instructions that compilers make of integer code, and no others: no floating
// point, no string instructions, no system registers. Segment gs begins at 0. There is one
// CPU, and nothing interrupts it.
package emulate
