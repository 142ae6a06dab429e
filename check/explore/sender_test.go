// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestSender: a grace period makes the stores visible that a round relies on, and fetches
// nothing afresh. So it is for the round to do so on the patcher's own CPU, which it does
// not on arm64 (kick_all_cpus_sync, kernel/smp.c): there the fence behind a store has to.
func TestSender(t *testing.T) {
	for arch, unfenced := range map[string]Verdict{"arm64": Unsafe, "riscv64": Safe} {
		for step, want := range map[string]Verdict{"SynchronizeRCU": unfenced, "Fence": Safe} {
			p, err := poke.ParseProtocol("round.plan", []byte("name: round\nbatching: whole\n\nevery batch:\n"+
				"    Write literal if literal\n    Fence\n    Write word\n    "+step+"\n    Sync 1\n"))
			if err != nil {
				t.Fatal(err)
			}
			s := setup(t, arch, "breakpoint", "", 2, 1)
			s.Protocol = p
			for _, reduce := range []Reductions{{}, all, single} {
				r := explore(t, s, Options{Reduce: reduce})
				if r.Verdict != want || want == Unsafe &&
					(r.Violation.Property != cpus.StaleAfterCompletion || r.Violation.CPU != 0) {
					t.Errorf("%s, %s, reduce %s: %s %v, want %s", arch, step, reduce, r.Verdict, r.Violation, want)
				}
			}
		}
	}
}
