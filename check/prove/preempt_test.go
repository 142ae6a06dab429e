// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// fewProtocols are those that differ most, and with -long all.
func fewProtocols() []string {
	if *long {
		return poke.Names()
	}
	return []string{poke.Native, "word", "stop-machine", "fence-per-write"}
}

// TestPreemptedTasks: what is proved without preemption is proved with it, and its updates end, but for stop_machine
// on riscv64: a task that was preempted inside of a pair goes on with another half. The explorer finds that, too.
func TestPreemptedTasks(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range fewProtocols() {
			s := setup(t, arch, protocol, "")
			want := properties(closed(t, s))
			s.Preempt = true
			p := closed(t, s)
			if arch == "riscv64" && (protocol == "stop-machine" || protocol == "fence-per-write") {
				want = string(cpus.HalfPair)
				m, err := s.Model()
				if err != nil {
					t.Fatal(err)
				}
				r, err := explore.Explore(t.Context(), m, explore.Options{Workers: 1})
				if err != nil || r.Violation == nil || r.Violation.Property != cpus.HalfPair {
					t.Errorf("%s %s: the explorer finds %v, %v", arch, protocol, r.Violation, err)
				}
			}
			if got := properties(p); got != want || p.Stuck != "" {
				t.Errorf("%s %s: %q, may stay at %q; want %q", arch, protocol, got, p.Stuck, want)
			}
		}
	}
}

// TestPreemptionAndMutations: preempted tasks save no defect. A grace period that asks CPUs alone does not wait for
// them: what a tracer was called by goes away below it.
func TestPreemptionAndMutations(t *testing.T) {
	for arch, wants := range breaks {
		for name, want := range wants {
			s := setup(t, arch, poke.Native, name)
			s.Preempt = true
			if got := properties(closed(t, s)); !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s %s: %q, want %q", arch, name, got, want)
			}
		}
	}
}

// TestEveryPreemptedStateIsSeen: once the views are closed, no step leads to another one: what CPUs do beside a view may
// become known long after the view.
func TestEveryPreemptedStateIsSeen(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, refs := range []int3.Refs{int3.PerCPU, int3.SharedRef} {
			s := setup(t, arch, "breakpoint", "")
			s.Preempt, s.Refs = true, refs
			c := closed(t, s).closure
			n := len(c.views)
			clear(c.noted)
			clear(c.foreign)
			for i := range n {
				c.expand(i)
			}
			if len(c.views) != n {
				t.Errorf("%s, refs %s: %d views, and %d steps later %d", arch, refs, n, c.steps, len(c.views))
			}
		}
	}
}

// TestWhatATaskOwes: a grace period asks CPUs and preempted tasks; it is over when neither owes an answer. A task's
// answer is not the CPU's that runs it.
func TestWhatATaskOwes(t *testing.T) {
	s := setup(t, "arm64", "word", "")
	s.Preempt = true
	c := closed(t, s).closure
	tasks, owing := 0, 0
	for _, v := range c.views {
		is := c.cpus.list[v[does]]
		waits := is.Quiet || v[asked] != askedNothing
		for _, b := range c.stepsOfPatcher(v[place], &v) {
			at := c.places.list[v[place]]
			it := c.program.items[at.item]
			if it.kind == atStep && c.program.plans.own[it.at].Op == poke.GracePeriod && at.stage > 0 &&
				waits && c.may(&v, &b, part{}) {
				t.Fatalf("the grace period ends beside: %s, asked %d", c.value(does, v[does]), v[asked])
			}
		}
		if is.Role == ofPreempted {
			tasks++
			if v[asked] != askedNothing || v[stand] != runs || v[home] != 0 {
				t.Fatalf("a preempted task is asked %d, stands %d, houses a patcher %d", v[asked], v[stand], v[home])
			}
			if is.Quiet {
				owing++
			}
		}
		if is.Quiet && is.Role != ofPreempted && v[asked] == askedNothing {
			owing++
		}
	}
	if tasks == 0 || owing < 2 {
		t.Errorf("%d views of preempted tasks, %d in which one of them owes an answer", tasks, owing)
	}
}

// TestWhoseAnswerAndWindow: a CPU that answers for a task that it has taken up still owes its own answer. The timer that
// preempts a task lets its CPU fetch afresh where interrupts do, and takes nothing else from what it may fetch.
func TestWhoseAnswerAndWindow(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		s := setup(t, arch, "breakpoint", "")
		s.Preempt = true
		c := closed(t, s).closure
		answers, parks := 0, 0
		for _, v := range c.views {
			is := c.cpus.list[v[does]]
			for _, b := range c.stepsOfCPU(v[does], &v) {
				to := c.after(&v, &b, part{cpu: true, site: true})
				now := c.cpus.list[to[does]]
				switch {
				case !c.may(&v, &b, part{cpu: true, site: true}) || is.Role == ofPreempted:
				case b.name == "cpu's task is preempted":
					parks++
					want := v[window]
					if c.code.Traits.InterruptSyncs {
						want = c.onlyText(v[text])
					}
					if to[window] != want {
						t.Fatalf("%s: behind a timer interrupt %s, want %s", arch, c.value(window, to[window]), c.value(window, want))
					}
				case is.Quiet && !now.Quiet && now.Role != ofPreempted && v[asked] == askedQuiesce:
					if answers++; to[asked] != askedQuiesce {
						t.Fatalf("%s: with the task's answer the CPU's own is given", arch)
					}
				}
			}
		}
		if answers == 0 || parks == 0 {
			t.Errorf("%s: %d answers for a task, %d tasks preempted", arch, answers, parks)
		}
	}
}

// TestPreemptionBesideWhatViewsCannotTell: it is refused beside NMIs and beside CPUs that come online.
func TestPreemptionBesideWhatViewsCannotTell(t *testing.T) {
	for _, text := range []string{withNMI(t, "breakpoint", "call a site"), trapsUp} {
		protocol, err := poke.ParseProtocol("beside.plan", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, "x86_64", "breakpoint", "")
		s.Protocol, s.Preempt = protocol, true
		if p, err := Close(context.Background(), s); err != nil || !strings.Contains(p.Condition, "preempted tasks beside") {
			t.Errorf("%s: %q, %v", protocol.Name, p.Why(), err)
		}
	}
}

// TestPreemptionIsAgreedOn: the solver takes the proofs of what the three kernels do, and what is assumed says that
// tasks are preempted.
func TestPreemptionIsAgreedOn(t *testing.T) {
	z3 := solver(t, "z3")
	for _, arch := range cpus.ArchNames() {
		s := setup(t, arch, poke.Native, "")
		s.Preempt = true
		if n, open, err := closed(t, s).Certify(t.Context(), z3); err != nil || n == 0 || len(open) > 0 {
			t.Errorf("%s: %d obligations, open %v, error %v", arch, n, open, err)
		}
	}
}
