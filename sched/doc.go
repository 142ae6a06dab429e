// SPDX-License-Identifier: Apache-2.0

// Package sched decides what goes together: it orders patches and cuts them into
// batches by the kernel's rules. Its package coordinator, which stands by itself, merges
// what many clients want into few updates.
package sched
