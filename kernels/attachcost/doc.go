// SPDX-License-Identifier: Apache-2.0

// Package attachcost counts what attaching to many functions takes, and detaching
// from them: rounds of interrupts by cause, stores, records walked, entries of
// hashes copied, allocations, changes of the list of ops and waits for grace
// periods.
//
// What differs between kernels is data (published.AttachParts). Counts are exact.
// Counting takes a step a call of the kernel's interface: where the kernel's work
// is quadratic, its count is not. What it takes in time is modelled (Costs).
package attachcost
