// SPDX-License-Identifier: Apache-2.0

// Package promela writes models for Spin, a search that shares no code with
// ours. A verdict on which both agree is worth more.
//
// The machine's rules are stated a second time, as text: cpu.tmpl is cpus.Step,
// patcher.tmpl is poke.Patcher.Step, and machine.tmpl is their shared state, with the
// constants of one model in it (page.go). texts.go and tables.go work out everything
// about bytes beforehand, from the instruction set alone: which texts a site goes
// through, which of them a fetch can mix, and the meaning of each. A program becomes
// a list of steps, one line each (plan.go).
//
// States differ on purpose: the checker keeps a log of all stores, and drops those that
// every CPU has seen. Here every site counts its own stores, which is enough for one
// patcher.
//
// The model does not check as which instruction a handler acts. Where it could be a
// wrong one, which shows in the plan alone (plan.go), the package refuses the model.
//
//	spin -a model.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
//
// ends with an assertion violated, which names a property, where the model is
// unsafe. A patcher that waits for ever is an invalid end state.
package promela
