// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestMaskedPatcher: while a patcher holds interrupts back in its walk, its CPU answers no round; it does where the walk
// holds back none.
func TestMaskedPatcher(t *testing.T) {
	for _, masked := range []bool{false, true} {
		m := programs(t, []poke.Step{{Op: poke.Walk, Masked: masked}}, []poke.Step{{Op: poke.Split}, {Op: poke.Sync}})
		full, err := newSearch(m, Options{Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := full.run(t.Context()); err != nil || r.Verdict != Safe {
			t.Fatal(r, err)
		}
		walks, answers, w := 0, 0, newWorld(m)
		home := m.homes[0]
		err = full.seen.each(func(_ uint64, words []uint64) error {
			w.unpack(words)
			at, _, stage := w.patcher[0].Place()
			if w.patcher[0].Between() || at != 0 || stage == 0 || !w.Pending(home, false) {
				return nil
			}
			walks++
			if slices.Contains(w.enabled(nil), action{kind: stepCPU, who: uint8(home)}) {
				answers++
			}
			return nil
		})
		if err != nil || walks == 0 || (answers == walks) == masked || masked && answers > 0 {
			t.Errorf("masked %v: CPU %d can answer in %d of %d states, %v", masked, home, answers, walks, err)
		}
	}
}

// TestOps: the ops that can be called are all but the one that does nothing; half of one beside half of another is loaded
// only where a literal is stored in halves.
func TestOps(t *testing.T) {
	const nop, traced = 1 << 32, 2<<32 | 5
	for _, parts := range [][]poke.Part{{poke.Literal}, {poke.LiteralLow, poke.LiteralHigh}, {poke.LiteralLow},
		{poke.LiteralHigh}} {
		var plan []poke.Step
		for _, part := range parts {
			plan = append(plan, poke.Step{Op: poke.Write, Part: part})
		}
		m := programs(t, plan)
		m.NopOps, m.Attached = nop, []uint64{traced}
		if err := m.findOps(); err != nil {
			t.Fatal(err)
		}
		patch := m.Programs[0].Patches[0]
		ops := []uint64{traced, patch.OldOps, patch.NewOps}
		slices.Sort(ops)
		if got := m.Ops(); !slices.Equal(got, ops) {
			t.Errorf("%v: %x, want %x", parts, got, ops)
		}
		halves := parts[0] != poke.Literal
		values := map[bool]int{false: 4, true: 16}[halves]
		if torn := slices.Contains(m.codec.Ops, 1<<32|5); torn != halves || len(m.codec.Ops) != values {
			t.Errorf("%v: %x", parts, m.codec.Ops)
		}
	}
}

// TestBegins: a patcher whose sites are not ready can begin if another one that changes them gets on, and not by itself.
func TestBegins(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Raise}}, []poke.Step{{Op: poke.Raise}})
	w := newWorld(m)
	w.patcher[0].Menu = nil // nothing that it could begin
	for able, want := range map[[MaxPatchers]bool]bool{{}: false, {true}: false, {false, true}: true, {true, true}: true} {
		if got := w.begins(0, &able); got != want {
			t.Errorf("where %v get on: %v", able, got)
		}
	}
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

// TestGracePlaces: a wait for tasks alone interrupts CPUs, of either kind.
func TestGracePlaces(t *testing.T) {
	for op, want := range map[poke.Op]bool{poke.GracePeriod: true, poke.SynchronizeRCU: true, poke.Raise: false} {
		interrupted := false
		programs(t, []poke.Step{{Op: op}}).eachPlace(func(ph cpus.Phase, _ string) {
			interrupted = interrupted || ph == cpus.Interrupted
		})
		if interrupted != want {
			t.Errorf("%v: %v", op, interrupted)
		}
	}
}

// TestNMITracesReplay: what an NMI executes while text changes is forced on the live machine, too.
func TestNMITracesReplay(t *testing.T) {
	for arch, protocol := range map[string]string{"x86_64": "stop-machine", "arm64": "stop-machine",
		"riscv64": "breakpoint"} {
		list := poke.ShippedPlans()
		file := list[slices.IndexFunc(list, func(p poke.ShippedPlan) bool { return p.Name == protocol })]
		s := setup(t, arch, protocol, "", 2, 1)
		var err error
		if s.Protocol, err = poke.ParseProtocol("nmi.plan", append(file.Text, "nmi:\n    call a site\n"...)); err != nil {
			t.Fatal(err)
		}
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Explore(t.Context(), m, Options{Reduce: all})
		if err != nil || r.Verdict != Unsafe {
			t.Fatal(arch, r, err)
		}
		if _, err := Replay(m, r.Trace); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
		if !slices.ContainsFunc(r.Trace.Steps, func(s Step) bool { return s.What == "an NMI comes" }) {
			t.Errorf("%s: no NMI in it", arch)
		}
	}
}
