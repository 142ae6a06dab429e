// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"testing"
)

// TestBrokenRulesAreNoticed: a comparison is worth what it notices. Each rule of
// the exported machine is broken once; then the two searches must not agree.
func TestBrokenRulesAreNoticed(t *testing.T) {
	needSpin(t)
	for _, c := range []struct {
		name                     string
		arch, protocol, mutation string
		cpus                     int
		old, broken              string
	}{
		{"an answer without a synchronisation", "x86_64", "breakpoint", "", 2,
			"\t\tatomic { sync(me) };\n\t\tunanswered--", "\t\tunanswered--"},
		{"stores that are lost", "x86_64", "breakpoint", "no-breakpoint", 1,
			"newest[s]++", "newest[s] = newest[s] + 0"},
		{"fetches that are never stale", "x86_64", "breakpoint", "drop-sync-1", 2,
			"\tnewest[s]++", "\tatomic { newest[s]++; sync(0); sync(1) }"},
		{"a grace period that waits for nobody", "x86_64", "breakpoint", "", 2,
			"box[me] = 0; quiet = 1 }", "box[me] = 0; unanswered-- }"},
		{"an ops that is never freed", "x86_64", "breakpoint", "no-grace-period", 2,
			"outcome[ops] = freed", "outcome[ops] = tracer"},
		{"a breakpoint that is always forgiven", "x86_64", "breakpoint", "drop-sync-3", 2,
			"newest_is(site, has(0, BREAKPOINT))", "0"},
		{"handlers that find nothing", "x86_64", "breakpoint", "", 2,
			"act = acts(published, site)", "act = 0"},
		{"a promise that is never made", "riscv64", "native", "drop-sync-2", 2,
			"newest[s] + (newest_is(s, versions) -> 1 : 2)", "0"},
		{"CPUs that do not stand still", "riscv64", "stop-machine", "", 2,
			":: !stands_still[me] -> break", ":: true -> break"},
		{"a CPU that is resumed and does not synchronise", "x86_64", "stop-machine", "", 2,
			"\tod;\n\tatomic { sync(me) };\n\tgoto boundary", "\tod;\n\tgoto boundary"},
		{"rounds that masking holds back", "riscv64", "fence-per-write", "", 2,
			"\t:: atomic { box[me] == sync_request -> box[me] = 0 };	/*", "\t:: atomic { false -> box[me] = 0 };	/*"},
		{"a buffer that loses a store", "arm64", "word", "", 2,
			"text_waits[s] = 0; newest[s]++", "text_waits[s] = 0"},
		{"stores that never wait", "riscv64", "word", "no-fence", 2,
			"waits[s] = 1", "waits[s] = 0; false"},
		{"a half of a pair that is not looked at", "riscv64", "stop-machine", "no-stop", 2,
			"(has(0, first) & has(1, t) & window) == 0", "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := model(t, setup(t, c.arch, c.protocol, c.mutation, c.cpus, 2))
			text := exported(t, m)
			if !bytes.Contains(text, []byte(c.old)) {
				t.Fatalf("the model has no %q", c.old)
			}
			want := verdict(t, m)
			first, all := ask(t, bytes.ReplaceAll(text, []byte(c.old), []byte(c.broken)), want)
			if !disagree(want, first, all) {
				t.Errorf("the checker says %q, Spin with the broken rule %q: nobody would notice", want, first)
			}
		})
	}
}
