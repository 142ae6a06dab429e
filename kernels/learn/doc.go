// SPDX-License-Identifier: Apache-2.0

// Package learn folds recorded batches of a kernel into a plan file: the steps of the
// kernel, in the words of package poke.
//
// A batch of several sites shows whether the kernel goes through all of them in
// phases, or from site to site. Batches that lack a phase show what it depends on.
// It says which steps were never seen, and which had to be assumed.
package learn
