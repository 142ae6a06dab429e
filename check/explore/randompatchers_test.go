// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// withLocks puts a program's steps under locks, here and there.
func withLocks(rt *rapid.T, plan []poke.Step) (out []poke.Step) {
	held := [2]bool{}
	for _, s := range plan {
		for k := range held {
			switch {
			case !held[k] && rapid.IntRange(0, 3).Draw(rt, "lock") == 0:
				out = append(out, poke.Step{Op: poke.Lock, Mutex: poke.Mutex(k)})
				held[k] = true
			case held[k] && rapid.IntRange(0, 3).Draw(rt, "unlock") == 0:
				out = append(out, poke.Step{Op: poke.Unlock, Mutex: poke.Mutex(k)})
				held[k] = false
			}
		}
		out = append(out, s)
	}
	for k := range held {
		if held[k] {
			out = append(out, poke.Step{Op: poke.Unlock, Mutex: poke.Mutex(k)})
		}
	}
	return out
}

// TestReductionsOnRandomPatchers compares searches with and without reductions on
// programs that nobody would write: of one or two patchers that share sites, on CPUs
// of any role, with rounds that leave some of them out. What breaks must break on the
// live machine too.
func TestReductionsOnRandomPatchers(t *testing.T) {
	manyPrograms(t)
	verdicts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		arch := rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch")
		protocol := rapid.SampledFrom([]string{"breakpoint", "breakpoint-lazy", "stop-machine"}).Draw(rt, "layout of")
		s := setup(t, arch, protocol, "", 2, rapid.IntRange(1, 2).Draw(rt, "sites"))
		s.Fetch = rapid.SampledFrom(cpus.Fetches()).Draw(rt, "fetch")
		s.Refs = rapid.SampledFrom([]int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}).Draw(rt, "refs")
		if rapid.Bool().Draw(rt, "no recheck") {
			s.Mutation.Path = []cpus.Variant{cpus.MissFatal}
		}
		s.Preempt = rapid.IntRange(0, 3).Draw(rt, "preempt") == 0
		n := rapid.IntRange(1, 2).Draw(rt, "programs")
		if rapid.Bool().Draw(rt, "third") {
			s.Roles = append(s.Roles, cpus.Busy)
		}
		for i := range s.Roles {
			s.Roles[i] = rapid.SampledFrom([]cpus.Role{cpus.Busy, cpus.Busy, cpus.Idle, cpus.IrqsOff, cpus.Isolated}).Draw(rt,
				"role")
		}
		s.Early = rapid.Bool().Draw(rt, "early")
		m, err := s.Model()
		if err != nil {
			return
		}
		fresh := &Model{
			Code: m.Code, Roles: m.Roles, Initial: m.Initial, Literals: m.Literals, NopOps: m.NopOps,
			Lookup: m.Lookup, Refs: m.Refs, Preempt: m.Preempt, SameSites: true, anyEnd: true,
		}
		patches := m.Programs[0].Patches
		for range n {
			plan := randomPlan(rt, &s, len(patches), m.Code.Literals(), m.Code.Len > m.Code.Traits.BreakpointLen)
			if protocol == "breakpoint-lazy" {
				for i := range plan {
					if plan[i].Op == poke.Sync {
						plan[i].Lazy = rapid.Bool().Draw(rt, "lazy")
					}
				}
			}
			if n > 1 {
				plan = withLocks(rt, plan)
			}
			fresh.Programs = append(fresh.Programs, Program{Patches: patches, Plan: plan})
		}
		if err := fresh.Prepare(); err != nil {
			verdicts["refused"]++
			return // too many stores, or texts
		}
		verdict, wrong := agree(t, fresh)
		verdicts[verdict]++
		if wrong != "" {
			rt.Errorf("%s\n%s\n%v", wrong, fresh.Code.Path, fresh.Programs)
		}
	})
	t.Logf("%v", verdicts)
	// a fifth of the draws may miss one
	if !testing.Short() && (verdicts[string(Safe)] == 0 || verdicts[string(Unsafe)] == 0) {
		t.Errorf("%v: not both verdicts", verdicts)
	}
}
