// Package sched decides what goes together: it orders patches and cuts them into
// batches by the kernel's rules (order.go, cut.go), and its Coordinator
// (coordinator.go, merge.go) merges what many clients want into few updates.
package sched
