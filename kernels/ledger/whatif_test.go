// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
)

// causes sums up what an action sends, by part of its work and cause.
func causes(t *testing.T, k *ledger.Kernel, action string, enable bool) map[string]int {
	t.Helper()
	r, err := k.NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := r.Switch(action, true)
	if err == nil && !enable {
		lines, err = r.Switch(action, false)
	}
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	sum := map[string]int{}
	for _, l := range lines {
		sum[l.Part+" "+l.Cause.String()] += l.Rounds()
	}
	return sum
}

// TestWhatIf: a mechanism changes what it is about, by its formula, and nothing else.
func TestWhatIf(t *testing.T) {
	k, err := ledger.Named("x86_64-7.2")
	if err != nil {
		t.Fatal(err)
	}
	batches := func(slots int) int { return 3 * ((k.Facts.Records + slots - 1) / slots) }
	sites := k.Facts.Calls["tp_func_sched_switch"].Sites + 1 // and the trampoline
	for _, c := range []struct {
		whatIf, action string
		enable         bool
		cause          string
		from, to       int
	}{
		{"vector=dynamic", "function-tracer", true, "records sync", batches(256), 3},
		{"vector=1000", "function-tracer", false, "records sync", batches(256), batches(1000)},
		{"static-calls=batched", "tracepoint:sched_switch", true, "tracepoint static-call", 3 * sites, 3},
		{"static-calls=batched", "tracepoint:sched_switch", false, "tracepoint static-call", 3 * sites, 3},
		{"detach=batched", "tracing-multi:1000", false, "bpf-image trampoline", 3000, 3 * 4},
		{"detach=batched,vector=dynamic", "tracing-multi:1000", false, "bpf-image trampoline", 3000, 3},
		{"uprobes=batched", "uprobe:40xnop10@3", true, "uprobe sync", 3 * 40 * 3, 3 * 3},
		{"uprobes=batched", "uprobe:40xnop10@3", false, "uprobe sync", 3 * 40 * 3, 3 * 40 * 3},
	} {
		other, err := k.WhatIf(strings.Split(c.whatIf, ","))
		if err != nil {
			t.Fatal(err)
		}
		before, after := causes(t, k, c.action, c.enable), causes(t, other, c.action, c.enable)
		if before[c.cause] != c.from || after[c.cause] != c.to {
			t.Errorf("%s, %s: %s %d and then %d, want %d and %d", c.whatIf, c.action, c.cause, before[c.cause], after[c.cause], c.from, c.to)
		}
		for cause, n := range before {
			batched := strings.Contains(c.whatIf, "vector") && cause == "records sync"
			tracepoint := strings.Contains(c.whatIf, "static-calls") && strings.HasSuffix(cause, "static-call")
			if cause != c.cause && !batched && !tracepoint && after[cause] != n {
				t.Errorf("%s, %s: %s %d and then %d", c.whatIf, c.action, cause, n, after[cause])
			}
		}
	}
}

// TestWhatIfSorted: records whose addresses fall are one batch each, and one in all where they are sorted.
func TestWhatIfSorted(t *testing.T) {
	k, err := ledger.Named("x86_64-7.2")
	if err != nil {
		t.Fatal(err)
	}
	sorted, err := k.WhatIf([]string{"vector=dynamic"})
	if err != nil {
		t.Fatal(err)
	}
	table, err := records.Open(t.Context(), "gen:n=100,order=descending", records.Options{Arch: k.Arch})
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[*ledger.Kernel]int{k: 100, sorted: 1} {
		r, err := of.NewReplay(table)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := r.Switch("function-tracer", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if l.Records > 0 && l.Batches != want {
				t.Errorf("%d records in %d batches, want %d", l.Records, l.Batches, want)
			}
		}
	}
}

// TestWhatIfWrong: what a kernel has nothing of, and what there is not.
func TestWhatIfWrong(t *testing.T) {
	for _, c := range []struct{ kernel, whatIf, want string }{
		{"x86_64-7.2", "vektor=dynamic", "vector"},
		{"x86_64-7.2", "vector=0", "want vector=dynamic|N"},
		{"x86_64-7.2", "detach", "want"},
		{"x86_64-7.2", "detach=7", "want"},
		{"arm64-7.2", "vector=dynamic", "has nothing of the kind: no function of the text-poke machinery"},
		{"x86_64-5.10", "detach=batched", "has nothing of the kind"},
	} {
		k, err := ledger.Named(c.kernel)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.WhatIf([]string{c.whatIf}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.kernel, c.whatIf, err, c.want)
		}
	}
}
