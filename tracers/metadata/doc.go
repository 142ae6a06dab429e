// SPDX-License-Identifier: Apache-2.0

// Package metadata holds the records that a global trampoline needs about the function
// that called it, and finds them by the function's address.
//
// A BPF trampoline is made for one function and has that function's programs and
// number of arguments in its instructions. A global trampoline is one piece of
// code for all functions; it has to look them up at each call (Menglong Dong, "bpf:
// tracing multi-link support", RFC v1 28 May 2025, v2 3 July 2025). The tables:
//
//	fixed-256, fixed-1024  chains behind a fixed number of buckets. 256 is what
//	                       fprobe's table of addresses had (FPROBE_IP_HASH_BITS = 8,
//	                       kernel/trace/fprobe.c, Linux 6.14 to 6.18), 1024 what BPF
//	                       trampolines' has (TRAMPOLINE_HASH_BITS = 10,
//	                       kernel/bpf/trampoline.c)
//	resizable              grows and shrinks with the functions in it, as the series'
//	                       v2, and as rhltable in fprobe since 6.19
//	padding                the number of a record stands in the bytes before the
//	                       function, as in the series' v1; records lie in an array
//	sync-map, rwmutex-map  the maps of Go programs, as rivals
//
// # Promises of all tables
//
// Any goroutine may call any method at any time. Changes wait for each other; a lookup allocates
// nothing and, but in rwmutex-map, never waits. Each operation is as if it happened at one moment
// between its call and its return. A record is never written once it is in a table. To change one,
// set another in its place; the garbage collector stands for the grace period after which the old
// one is freed.
package metadata
