// SPDX-License-Identifier: Apache-2.0

// Package conform holds the recorded steps of a kernel against a protocol: each
// batch makes the steps of the protocol's plan, in its order and with its bytes, and
// CPUs do what the machine's CPUs may do.
//
// A step of the plan may be missing where nothing of it could be seen, or nothing
// would come of it: a fence; a store of bytes that are there already; a round before
// which nothing has been stored. Rounds and stops of the machine that the plan does
// not ask for are allowed, and counted.
package conform
