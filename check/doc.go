// SPDX-License-Identifier: Apache-2.0

// Package check asks whether a protocol is safe on a small machine, and answers with a row:
// the verdict, what breaks, and how many steps the shortest way there has. A Question is a
// protocol, a plan file or a bug of the museum, on an architecture, with CPUs and sites.
// Package explore looks at every interleaving; Replay forces what was found on an engine.
// Package prove is for any number of CPUs and sites, package litmus for single fetches.
package check
