// SPDX-License-Identifier: Apache-2.0

// Package int3 answers "which breakpoint is this?". A trap handler knows the
// address it came from and needs the instruction to act as, while a patcher
// replaces what can be found from batch to batch.
//
//   - Index (index.go) is what is searched: a btree, or its rivals, a
//     sorted vector, the old walk over groups and a hash. An Index is immutable
//     once built, so that reading takes no lock.
//   - Table (table.go) publishes one Index at a time to all CPUs, atomically, and
//     counts the handlers that hold a reference, for which the patcher
//     waits before it takes the Index away.
//   - Cost says what lookups cost in comparisons without building
//     anything, exactly.
package int3
