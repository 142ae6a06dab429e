// SPDX-License-Identifier: Apache-2.0

// Package timeline records what an engine does as a timeline that ui.perfetto.dev
// opens: a track for the patcher with the steps of its plan, one for each CPU with
// what interrupts it, an arrow from every round to every delivery, and counters.
//
// Engines tell a Recorder in their own terms, when something is over. Several runs
// go into one file, one after the other.
package timeline
