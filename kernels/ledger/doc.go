// SPDX-License-Identifier: Apache-2.0

// Package ledger holds what real kernels send when a tracer is switched on or
// off, cause by cause, and what such kernels were seen to take.
//
// The rounds of the records are only a part of it. A tracer also hooks
// tracepoints, aims calls in its trampolines elsewhere and orders what other CPUs
// load. How many keys and static calls that touches differs from kernel to
// kernel, so these numbers are data, each with how it is known.
package ledger
