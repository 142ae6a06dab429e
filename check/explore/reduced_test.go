// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestReducedStateCounts holds how many states each reduction leaves against a file: one that does less than it could
// is as right as it was, and slower, which no verdict tells. Together they leave no more than one by itself.
func TestReducedStateCounts(t *testing.T) {
	var b strings.Builder
	for _, arch := range cpus.ArchNames() {
		for _, tt := range []struct {
			name, protocol string
			change         func(*Setup)
		}{
			{"", "native", func(*Setup) {}}, {"", "breakpoint", func(*Setup) {}}, {"", "per-site", func(s *Setup) { s.Sites, s.Roles = 2, s.Roles[:2] }},
			{"isolated", "breakpoint-lazy", func(s *Setup) { s.Roles = []cpus.Role{cpus.Busy, cpus.Isolated} }},
			{"idle", "stop-machine", func(s *Setup) { s.Roles = []cpus.Role{cpus.Busy, cpus.Idle} }},
			{"shared", "breakpoint", func(s *Setup) { s.Refs, s.Roles = int3.SharedRef, s.Roles[:2] }},
			{"uncounted", "breakpoint", func(s *Setup) { s.Refs, s.Roles = int3.NoRef, s.Roles[:2] }},
			{"preempted", "breakpoint", func(s *Setup) { s.Preempt, s.Roles = true, s.Roles[:2] }},
			{"endless", "breakpoint", func(s *Setup) { s.Workload, s.Roles = Endless, s.Roles[:2] }},
			{"two patchers", "word", func(s *Setup) { s.Patchers, s.Sites, s.Roles = 2, 2, s.Roles[:2] }},
		} {
			s := setup(t, arch, tt.protocol, "", 3, 1)
			tt.change(&s)
			states := map[string]uint64{}
			for _, name := range ReductionNames() {
				if name == "none" { // see TestStateCounts
					continue
				}
				reduce, err := ParseReductions(name)
				if err != nil {
					t.Fatal(err)
				}
				states[name] = explore(t, s, Options{Reduce: reduce, Workers: 1}).States
			}
			if states["all"] > min(states["order"], states["symmetry"]) {
				t.Errorf("%s %s %s: %v", arch, tt.protocol, tt.name, states)
			}
			fmt.Fprintf(&b, "%-8s %-16s %-12s %v\n", arch, tt.protocol, tt.name, states)
		}
	}
	golden(t, "reduced.txt", b.String())
}

// TestSingleCounts: where CPUs can do something to each other, or steps are not known to commute, no call is left out.
func TestSingleCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Setup)
		want   bool
	}{
		"alone":        {func(*Setup) {}, true},
		"two patchers": {func(s *Setup) { s.Patchers, s.Sites = 2, 2 }, false},
		"preempted":    {func(s *Setup) { s.Preempt = true }, false},
		"shared":       {func(s *Setup) { s.Refs = int3.SharedRef }, false},
		"uncounted":    {func(s *Setup) { s.Refs = int3.NoRef }, true},
		"NMIs":         {func(s *Setup) { s.Protocol = parsed(t, "nmi:\n    call a site\n    sync\n") }, false},
		"comes online": {func(s *Setup) { s.Protocol = parsed(t, "online:\n    come online\n    sync\n") }, false},
	} {
		s := setup(t, "x86_64", "breakpoint", "", 3, 1)
		tt.change(&s)
		m, err := s.Model()
		if err != nil {
			t.Fatal(name, err)
		}
		if e := newExpander(m, single); e.reduce.Single != tt.want || e.reduce.Symmetry == tt.want {
			t.Errorf("%s: %+v", name, e.reduce)
		}
		if e := newExpander(m, Reductions{Single: true, Symmetry: true}); e.reduce.Single || !e.reduce.Symmetry {
			t.Errorf("%s, without the order: %+v", name, e.reduce)
		}
	}
}

// parsed is a protocol that stores a word, and what else it says.
func parsed(t *testing.T, more string) *poke.Protocol {
	t.Helper()
	p, err := poke.ParseProtocol("x.plan", []byte("name: x\nbatching: whole\nevery batch:\n    Write word\n    Sync 1\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestInCall: a CPU is in a call from behind the site on until it is back between two calls; an interrupt changes
// nothing.
func TestInCall(t *testing.T) {
	at := func(phase, back cpus.Phase) *cpus.CPU {
		var c cpus.CPU
		c.Phase, c.Back = phase, back
		return &c
	}
	for phase := cpus.Boundary; phase <= cpus.Down; phase++ {
		want := phase > cpus.Asleep && phase < cpus.Interrupted || phase == cpus.Doubting
		if got := inCall(at(phase, 0)); got != want {
			t.Errorf("%s: %v", phase, got)
		}
		for _, handler := range []cpus.Phase{cpus.Interrupted, cpus.Syncing, cpus.Answering} {
			if got := inCall(at(handler, phase)); got != want && phase < cpus.Interrupted {
				t.Errorf("%s, back to %s: %v", handler, phase, got)
			}
		}
	}
	if !inCall(&cpus.CPU{Masked: 1}) {
		t.Error("a CPU that holds interrupts back")
	}
}
