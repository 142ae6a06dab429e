// SPDX-License-Identifier: Apache-2.0

// Package explore explores every interleaving of a small machine: the same plans,
// CPU steps and fetch windows as on the live machine, with a search instead of a
// Chooser.
//
//   - A Model (model.go) has code, CPUs, and patchers with their programs. A world
//     (world.go, ground.go) is one state of it, the plain-word counterpart of
//     cpus.Machine and poke.Executor. pack.go writes a world as a few words.
//   - An action (action.go) is one step of a CPU or a patcher, with the answers
//     that its chooser gave.
//   - Search (search.go) goes breadth first, level by level, on several cores. It
//     keeps visited states as fingerprints or exactly (visited.go). reduce.go says
//     which steps need not be interleaved, and why.
//   - A Trace (trace.go) is the shortest way to a violation, for people
//     (explain.go), for files, and for other engines (replay.go).
//
// A world shares its steps and rules with the other engines, but has a memory of its own: a search copies and compares
// states and packs them into words. So texts are indexes, positions count from the newest store that every CPU has
// seen, and each access notes its writes.
package explore
