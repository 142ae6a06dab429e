// SPDX-License-Identifier: Apache-2.0

// Package museum keeps bugs that kernels have had in patching their text, each
// as a small machine that breaks in the way that the report says, and that does
// not break with the upstream fix and nothing else changed. Beside them are the
// rules that tracers must keep to, told in the same way.
//
//   - Bug (bug.go) is one exhibit: its story, its sources, what must break, and
//     the check.Model of either side of the fix.
//   - Each is a text, cases/NUMBER-NAME.case: headers, then the machine, what its
//     sites hold, what is patched, what each patcher does, and what CPUs do where
//     that is not what they do by themselves. A line that ends in "if broken" or
//     "if fixed" is there on one side only. read.go takes it apart, stage.go and
//     machine.go lay the machine out.
//   - The letter of a number is where an exhibit comes from: A breakpoints and
//     static keys, B the core of ftrace, C arm64, D riscv64, E trampolines of BPF.
//     P are rules about modes, NMIs and hotplug, and proposals that were not merged.
//     T are the cases of tracers: the global pair of ops and function, literals and
//     the ops that they name, direct calls.
//   - What cannot be told in this machine's words is listed with the reason
//     (omitted.json). Exhibits and omissions share one catalogue.
package museum
