// SPDX-License-Identifier: Apache-2.0

// Package commands reads the command lines and files of other tracers, and tells which actions of package ledger they
// switch, in the tools' own order.
//
//	commands.go  which tool it is; options; names that stand for several
//	tracecmd.go  trace-cmd record, start and stream (3.1.6, 3.3)
//	perf.go      perf record, stat, trace, ftrace and probe (Linux 6.1)
//	bpftrace.go  the probes of a program (0.17)
//	tetragon.go  a TracingPolicy (Tetragon 1.2)
//	modules.go   modprobe, insmod, and lists of modules
//
// Options that change no text are read and left out. [ledger.Course.Unknown] names the parts that are not understood.
package commands
