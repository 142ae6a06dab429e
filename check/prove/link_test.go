// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// small is a protocol's machine of so many CPUs and sites, which goes on for ever.
func small(t *testing.T, s *explore.Setup, n size) *explore.Model {
	t.Helper()
	s.Workload, s.Sites, s.Roles = explore.Endless, n.sites, slices.Repeat([]cpus.Role{cpus.Busy}, n.cpus)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	if m.Code.Path.Tells {
		s.Roles[n.cpus-1] = cpus.Isolated
		if m, err = s.Model(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// size is of a machine.
type size struct{ cpus, sites int }

// simulated are the machines that are held against a protocol's certificate.
func simulated(arch, protocol string, refs int3.Refs, fetch cpus.Fetch) (list []size) {
	if *long {
		return []size{{2, 1}, {2, 2}, {3, 1}}
	}
	if fetch != cpus.Weak || refs != int3.PerCPU && (arch == "riscv64" || protocol != "breakpoint") {
		return nil
	}
	list = append(list, size{2, 1})
	switch {
	case protocol == "stop-machine":
		list = append(list, size{2, 2}, size{3, 1})
	case arch == "x86_64" && protocol == "per-site", arch == "riscv64" && protocol == "word":
		list = append(list, size{2, 2})
	}
	return list
}

// TestEveryRunIsARunOfTheCertificate: whatever the explorer's machines do, the machine of
// the obligations does: every state that is reached has views which were found, and every
// step is one of theirs.
func TestEveryRunIsARunOfTheCertificate(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, refs := range []int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef} {
				s := setup(t, arch, protocol, "")
				if s.Refs = refs; refs != int3.PerCPU && !s.Protocol.Traps {
					continue
				}
				p := closed(t, s) // of weak fetches: it is the certificate for every other model, too
				if !p.Closed() {
					continue
				}
				for _, fetch := range cpus.Fetches() {
					for _, size := range simulated(arch, protocol, refs, fetch) {
						s.Fetch = fetch
						sim, err := simulate(context.Background(), p.closure, small(t, s, size), 1_000_000)
						if err != nil && !(*long && errors.Is(err, explore.ErrTooMany)) {
							t.Errorf("%s %s, refs %s, fetch %s, %v: %v", arch, protocol, refs, fetch, size, err)
						}
						if err == nil {
							t.Logf("%s %s, refs %s, fetch %s, %v: %d states, %d steps, %d of %d views", arch, protocol, refs, fetch,
								size, len(sim.states), sim.steps, len(sim.met), p.Views())
						}
					}
				}
			}
		}
	}
}

// TestEveryViewIsMissed: of a certificate without one of its views, and without one of its
// rules, the explorer's machines show that it lacks it.
func TestEveryViewIsMissed(t *testing.T) {
	s := setup(t, "x86_64", "stop-machine", "")
	m := small(t, s, size{2, 1})
	whole, err := simulate(context.Background(), closed(t, s).closure, m, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for v := range whole.met {
		delete(whole.index, v)
		if _, err := simulate(context.Background(), whole.closure, m, 10_000); err == nil {
			t.Errorf("nobody misses the view %v", v)
		}
		whole.index[v] = 0
	}
	for name := range whole.made {
		if _, err := simulate(context.Background(), whole.closure, m, 10_000, name); err == nil {
			t.Errorf("nobody misses the step %q", name)
		}
	}
}
