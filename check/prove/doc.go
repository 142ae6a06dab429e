// SPDX-License-Identifier: Apache-2.0

// Package prove proves a protocol for any number of CPUs, sites and updates.
//
//   - A view (view.go) is the state of one CPU and one site at one place of the plan.
//     The package makes each step of a CPU or of the patcher to find its effect on a
//     view: cpus.Step and poke.Patcher run on a ground of one CPU and one site
//     (cell.go), which notes what they read and write (view.go).
//   - close.go goes through the views until no step leads to another one.
//   - smt.go writes the claim that no step of any CPUs and sites leads out of the views,
//     as files for independent solvers, and runs these.
//   - coq.go writes the views and the steps as data for Coq. A proof written by hand
//     shows that they are enough for any CPUs and sites.
package prove
