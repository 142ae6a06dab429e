// SPDX-License-Identifier: Apache-2.0

// Package sched orders patches and cuts them into batches by the kernel's rules; no other
// package cuts batches. Package coordinator below it merges the wishes of many clients
// into few updates, and needs nothing of this one.
package sched
