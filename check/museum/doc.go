// Package museum keeps bugs that kernels have had in patching their text, each
// as a small machine that breaks in the way that the report says, and that does
// not break with the upstream fix and nothing else changed. Beside them are the
// rules that tracers must keep to, told in the same way.
//
//   - Bug (bug.go) is one exhibit: its story, its sources, what must break, and
//     the check.Model of either side of the fix.
//   - The exhibits are by where they come from: breakpoints on x86 (pokes.go),
//     static keys (keys.go), the core of ftrace (core.go), arm64 (arm64.go),
//     riscv64 (riscv64.go), trampolines of BPF (trampolines.go).
//   - The cases of tracers are by what they are about: the global pair of ops and
//     function (pairs.go), literals and the ops that they name (literals.go),
//     direct calls (direct.go).
//   - What cannot be told in this machine's words is listed with the reason
//     (omitted.go). Exhibits and omissions share one catalogue: a letter for the
//     section and a running number.
//   - scene.go and steps.go are what the stages are built of, difference.go
//     says what the fix has changed.
package museum
