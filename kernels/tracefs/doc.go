// SPDX-License-Identifier: Apache-2.0

// Package tracefs switches the function tracer, function_graph and the trace events of a running kernel, in instances
// of its own, and reads what they write.
//
// An instance has a filter, a tracer and a buffer that no other user of tracefs sees
// (Documentation/trace/ftrace.rst, "Instances"). The package writes below its instance only.
// The kernel updates its text when the filter's file is closed, so that one opening is one
// update (ftrace_regex_release, kernel/trace/ftrace.c).
//
// An empty filter means all functions. The package therefore switches the tracer off before a
// filter becomes empty, adds before it removes where nothing of the old filter stays, and reads
// back what the kernel made of it.
//
//	files.go     the files of tracefs
//	trial.go     a tracefs that writes nothing, and says what it would
//	instance.go  an instance: made, held, given up
//	filter.go    the functions that it traces
//	events.go    its trace events
//	line.go      lines of trace_pipe
package tracefs
