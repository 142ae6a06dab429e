// SPDX-License-Identifier: Apache-2.0

// Package vmlinux reads a Linux kernel as it is linked: its memory, and the symbol table
// that it carries for itself (kallsyms). [Open] takes every form in which kernels are
// kept: bzImage (vmlinuz of x86), Image (arm64, riscv64), EFI zboot, ELF (vmlinux), each
// packed in any way that package unpack knows.
//
// A file may be anything. Every read is bounded; an error is one line and names the file.
// [Kernel.Notes] lists the tables that were found without their symbols, or not at all.
package vmlinux
