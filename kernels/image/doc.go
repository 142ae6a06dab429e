// SPDX-License-Identifier: Apache-2.0

// Package image reads a Linux kernel's image: what a machine boots, or the ELF file
// that it was made of. It unpacks it, decodes the symbol table that the kernel
// carries for itself, and finds the tables of what the kernel patches at run time:
// the records of ftrace in the order in which the kernel walks them, the branches of
// static keys, the sites of static calls, tracepoints and trace events. It decodes
// direct calls, so that a mechanism can be told from the code itself: mechanisms.rules says which
// calls show which mechanism, rules.go how such rules are read, conditions.go what they can ask.
//
// A file may be anything: every read is bounded, and a structure that the package does not
// understand is an error in one line. It guesses nothing.
package image
