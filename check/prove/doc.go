// SPDX-License-Identifier: Apache-2.0

// Package prove proves a protocol for any number of CPUs, sites and updates.
//
//   - A view (view.go) is what one CPU and one site are to each other at one place of
//     the plan. What one step of a CPU or of the patcher does to a view is found by
//     making the step: cpus.Step and poke.Patcher run on a ground of one CPU and one
//     site (cell.go), which notes what they read and write (view.go).
//   - close.go goes through the views until no step leads to another one.
//   - smt.go writes that no step leads out of the views, of all CPUs and all sites at
//     once, as files for solvers that others wrote, and asks these.
//   - coq.go writes the views and the steps as data for Coq, beside a proof written by
//     hand that they are enough for any CPUs and sites.
package prove
