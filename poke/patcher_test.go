// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// selfCounter counts how often the patcher's own CPU fetches afresh.
type selfCounter struct {
	*paper
	selfs int
}

func (g *selfCounter) SyncSelf() { g.selfs++ }

// TestRoundsAndTheSender: on_each_cpu and flush_icache_all make the sender fetch afresh
// too, kick_all_cpus_sync does not: there the isb behind a store does (Fence).
func TestRoundsAndTheSender(t *testing.T) {
	for arch, want := range map[string][2]int{"x86_64": {1, 1}, "arm64": {0, 1}, "riscv64": {1, 1}} {
		for i, op := range []Op{Sync, Fence} {
			s := shapeOf(t, arch, Named("breakpoint", mustArch(t, arch)), 1, false)
			w, patches := world(t, Named("breakpoint", s.Traits), s)
			g := &selfCounter{paper: w}
			p := &Patcher{Code: w.code, Patches: patches, Plan: []Step{{Op: op, Round: 1}}}
			for !p.Between() {
				if _, err := p.Step(context.Background(), g, cpus.NewRandom(1, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if g.selfs != want[i] {
				t.Errorf("%s %s: the own CPU fetches afresh %d times, want %d", arch, op, g.selfs, want[i])
			}
		}
	}
}

func mustArch(t *testing.T, name string) isa.Traits {
	t.Helper()
	a, err := cpus.ParseArch(name)
	if err != nil {
		t.Fatal(err)
	}
	return a.Traits()
}
