// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"fmt"
	"time"
)

// Range is what has been published about a cost, on whatever machines: what is
// said when somebody asks for it and names no calibration.
type Range struct {
	Name      string
	Low, High float64
	Unit      Unit
	Sources   []string // low first
}

// String is the range in one line, as "round: 2.513µs to 467µs".
func (r Range) String() string {
	if r.Unit == Time {
		return fmt.Sprintf("%s: %v to %v", r.Name, time.Duration(r.Low), time.Duration(r.High))
	}
	return fmt.Sprintf("%s: %g to %g %s", r.Name, r.Low, r.High, r.Unit)
}

// RoundName is the range of a round, from preparing it to the last answer.
const RoundName = "round"

// The sources that several ranges have in common.
const (
	jumpLabels = "x86/jump_label: Bound IPIs sent when updating a static key, v6 cover letter, 2019-06-12"
	perCPURefs = "x86/alternatives: remove false sharing in poke_int3_handler(), v2, 2025-03-24 (4334336e769b)"
	deferral   = "context_tracking,x86: Defer some IPIs until a user->kernel transition, v7 cover letter, 2025-11-14"
	sendIPI    = `KVM: X86: Implement "send IPI" hypercall (4180bf1b655a, 2018), 100,000 times each`
	kprobes    = "Documentation/trace/kprobes.rst"
	trampoline = "bpf-next, 2026-01: bpftrace on 27 functions, 4.416 s with a wait for each and 1.667 s without"
)

// Ranges lists what has been published. Where ends were computed from what stands
// in the source, it is said how.
func Ranges() []Range {
	return []Range{
		{RoundName, 2513, 467e3, Time, []string{
			"one target in a guest, 251 ms in all: " + sendIPI,
			"79 targets in a guest, 76 to 198 us: " + sendIPI,
			"479 targets with the stores of 2 entries, 324 and 519 us for three: " + perCPURefs,
			"23 targets, 57 ms for 168: " + jumpLabels,
			"23 targets with the stores of 56 entries, 1.4 ms for three: " + jumpLabels,
		}},
		{"int3 handler", 45, 180, Time, []string{"1 entry and 56 entries: " + jumpLabels}},
		{"breakpoint with its handler", 430, 990, Time, []string{
			"a kprobe, boosted and not, on a Xeon E5410 of 2.33 GHz: " + kprobes,
		}},
		{"kernel entry and exit", 270, 1040, Time, []string{"getpid on Gold 6248 and E7-8890, without deferral: " +
			deferral}},
		{"kernel entry and exit with deferral", 273, 1340, Time, []string{"getpid on Gold 6248 and E5-2699: " + deferral}},
		{"deferral at an entry", 3, 570, Time, []string{"what getpid takes more on Gold 6248 and E5-2699: " + deferral}},
		{"grace period", 100e6, 101.9e6, Time, []string{
			"about 100 ms as its author says, and (4.416 - 1.667) s / 27: " + trampoline,
		}},
		{"line transfer", 16, 576, Time,
			[]string{"two cores of Ryzen 5900X and of PowerPC 970: github.com/nviennot/core-to-core-latency, README"}},
		{"deep idle left", 50e3, 100e3, Time,
			[]string{"RFC: Extend mwait idle to optimize away IPIs when possible, LKML, 2012-02-06"}},
	}
}

// RoundRange is the published range of a round, in nanoseconds.
func RoundRange() (low, high float64) {
	for _, r := range Ranges() {
		if r.Name == RoundName {
			low, high = r.Low, r.High
		}
	}
	return low, high
}
