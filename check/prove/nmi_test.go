// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/poke"
)

// withNMI is a shipped plan with a program for NMIs.
func withNMI(t *testing.T, protocol, steps string) string {
	t.Helper()
	list := poke.ShippedPlans()
	i := slices.IndexFunc(list, func(p poke.ShippedPlan) bool { return p.Name == protocol })
	return regexp.MustCompile(`(?m)^name:.*`).ReplaceAllString(string(list[i].Text), "name: nmi") + "nmi:\n    " + steps + "\n"
}

// TestNMIs: behind breakpoints, and where one store replaces a whole site, an NMI may execute what is
// being changed. It may not while the machine stands still for stores of several bytes. On riscv64
// firmware's round gets through to an NMI that has hit a breakpoint's handler: the round is answered,
// and the handler comes too late. An NMI that hits a CPU in user space takes what rounds have left out.
func TestNMIs(t *testing.T) {
	for _, c := range []struct {
		arch, protocol, steps string
		want                  Verdict
		says                  string
	}{
		{"x86_64", "breakpoint", "call a site", Proved, ""},
		{"arm64", "word", "call a site", Proved, ""},
		{"riscv64", "word-rounds", "call a site", Proved, ""},
		{"x86_64", "stop-machine", "call a site", Refuted, "torn-fetch"},
		{"arm64", "stop-machine", "call a site", Refuted, "stale-after-completion"},
		{"riscv64", "breakpoint", "call a site", Refuted, "unhandled-breakpoint"},
		{"x86_64", "breakpoint-lazy", "call a site", Refuted, "torn-fetch"},
		{"x86_64", "breakpoint-lazy", "enter\n    catch up\n    call a site\n    leave again", Unproved,
			"does not learn of it"},
		{"x86_64", "breakpoint", "call a site\nonline:\n    come online\n    sync", Unproved, "NMIs beside CPUs"},
	} {
		q := questions(t, c.arch, withNMI(t, c.protocol, c.steps), "none")[0]
		limit := uint64(1) << 20
		if c.want == Unproved {
			limit = 1000
		}
		r, err := Ask(context.Background(), q, nil, explore.Options{Workers: 1, LimitStates: limit})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != c.want && c.want != Unproved || r.Verdict == Proved && c.want == Unproved ||
			!strings.Contains(r.Condition, c.says) {
			t.Errorf("%s %s, %q: %s %q; want %s %q", c.arch, c.protocol, c.steps, r.Verdict, r.Condition, c.want, c.says)
		}
		if says := strings.Contains(r.Assumes(), "non-maskable"); says {
			t.Errorf("%s %s: %s", c.arch, c.protocol, r.Assumes())
		}
		if says := strings.HasSuffix(r.Assumes(), "; not proved: that updates end"); says != (r.Verdict != Proved || r.Stuck != "") {
			t.Errorf("%s %s, %s: %s", c.arch, c.protocol, r.Verdict, r.Assumes())
		}
	}
}

// TestNMIsOnThePatchersCPU: while an NMI is there the patcher does not go on.
func TestNMIsOnThePatchersCPU(t *testing.T) {
	q := questions(t, "x86_64", withNMI(t, "breakpoint", "call a site"), "none")[0]
	c := closed(t, &q.Setup).closure
	met := 0
	for _, v := range c.views {
		if c.cpus.list[v[does]].InNMI() && v[home] == 1 {
			met++
			for _, b := range c.stepsOfPatcher(v[place], &v) {
				if b.onCPU = true; c.may(&v, &b, part{cpu: true, site: true}) {
					t.Fatalf("%s goes on in %s", b.name, c.value(does, v[does]))
				}
			}
		}
	}
	if met == 0 {
		t.Error("no NMI comes to the patcher's CPU")
	}
}
