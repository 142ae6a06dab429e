// SPDX-License-Identifier: Apache-2.0

// Package explore explores every interleaving of a small machine: the same plans,
// CPU steps and fetch windows as on the live machine, with a search instead of a
// Chooser.
//
//   - Model (model.go) is what is explored: code, CPUs, patchers with their
//     programs. world (world.go, ground.go) is one state of it, the
//     plain-word counterpart of cpus.Machine and poke.Executor. pack.go writes a
//     world as a few words.
//   - An action (action.go) is one step of somebody, with the answers that its
//     chooser gave.
//   - Search (search.go) goes breadth first, level by level, on several cores;
//     what has been seen is kept as fingerprints or exactly (visited.go).
//     reduce.go says which steps need not be interleaved, and why.
//   - A Trace (trace.go) is the shortest way to a violation, for people
//     (explain.go), for files, and for other engines (replay.go).
//
// A world shares its steps and rules with the other engines, and not its memory: a search copies and compares states and
// packs them into words, so that texts are indexes, positions count from what every CPU has seen, and each access notes
// what it writes.
package explore
