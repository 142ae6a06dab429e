// SPDX-License-Identifier: Apache-2.0

// Package promela writes models for Spin, a search that shares no code with
// ours: two that agree are worth more than one.
//
// The machine's rules are stated a second time, as text: cpu.tmpl is cpus.Step,
// patcher.tmpl is poke.Patcher.Step, machine.tmpl is what they share, with the
// constants of one model in it (page.go). What concerns bytes is worked out
// beforehand (texts.go, tables.go), from the instruction set alone: which texts a
// site goes through, which of them a fetch can mix, what each means. A program
// becomes a list of steps, one line each (plan.go).
//
// What a state is differs on purpose: the checker keeps a log of all stores, which
// CPUs forget; here every site counts its own, which is enough where one patcher
// makes them.
//
// What handlers act as is not asked there: a model in which that can be wrong, which a
// plan of one patcher tells by itself (plan.go), is refused.
//
//	spin -a model.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
//
// ends with an assertion violated, which names a property, where the model is
// unsafe. A patcher that waits for ever is an invalid end state.
package promela
