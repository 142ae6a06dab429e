// SPDX-License-Identifier: Apache-2.0

// Package museum keeps bugs that kernels have had in patching their text. Each is a
// small machine that breaks in the way that the report says. With the upstream fix
// as the only change it does not break. The rules that tracers must keep to stand
// beside them, in the same form.
//
//   - Bug (bug.go) is one exhibit: its story, its sources, the property that must
//     break, and the check.Model of either side of the fix.
//   - Each is a text, cases/NUMBER-NAME.case: headers, then the machine, its sites'
//     text, the patches, each patcher's plan, and the CPUs' paths where these differ
//     from the architecture's own. A line that ends in "if broken" or "if fixed" is
//     there on one side only. read.go takes it apart, stage.go and machine.go lay
//     the machine out.
//   - The letter of a number is where an exhibit comes from: A breakpoints and
//     static keys, B the core of ftrace, C arm64, D riscv64, E trampolines of BPF.
//     P are rules about modes, NMIs and hotplug, and proposals that were not merged.
//     T are the cases of tracers: the global pair of ops and function, literals and
//     the ops that they name, direct calls.
//   - omitted.json lists the bugs that this machine cannot show, with the reason.
//     Exhibits and omissions share one catalogue.
package museum
