// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"fmt"
	"math"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// slowCases are machines whose rounds take so long that each CPU makes dozens of calls meanwhile.
func slowCases() []rigged {
	cases := thinningCases()
	for i := range cases {
		c, k := &cases[i], *cases[i].Costs
		k.Send, k.Calls, k.FetchLag = 20_000, 1e6, 20_000
		c.Costs, c.sites, c.Slots, c.Refs = &k, 8, 4, int3.PerCPU
	}
	return cases
}

// TestStretchLaw: calls that are drawn CPU by CPU are spread as those of a machine that executes every call in its turn.
func TestStretchLaw(t *testing.T) {
	for _, r := range spreadAlike(t, slowCases(), 100, 3000) {
		if r.protocol.Batching == poke.Buffered && r.stretch.begun == 0 {
			t.Errorf("%s: all calls were drawn for all CPUs together", r.protocol.Name)
		}
	}
}

// TestStretchCounts: what is counted exactly does not depend on how calls are drawn.
func TestStretchCounts(t *testing.T) {
	for _, c := range slowCases() {
		var want string
		for _, calls := range []Thinning{Every, HotOnly} {
			c.Calls = calls
			got := ""
			for _, out := range newRig(t, c).toggle() {
				got += fmt.Sprint(out.Counts.Rounds, out.Counts.Sent, out.Counts.Taken)
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s %s: %s where every call is executed, %s otherwise", c.arch, c.protocol, want, got)
			}
		}
	}
}

// TestStretchViolations: text that breaks a promise is met as often, whichever way calls are drawn. The bound is that of
// TestThinningLaw.
func TestStretchViolations(t *testing.T) {
	cases, seeds := slowCases()[:1], 40
	if *long {
		cases, seeds = slowCases(), 400
	}
	bound := math.Sqrt(-math.Log(0.0001/2)/2) * math.Sqrt(2*float64(seeds))
	for _, c := range cases {
		r := newRig(t, c)
		for _, m := range r.protocol.Mutations(r.shape) {
			c.mutation = m.Name
			var met [2]int
			for way, calls := range []Thinning{Every, HotOnly} {
				for seed := range uint64(seeds) {
					c.Seed, c.Calls = seed, calls
					r := newRig(t, c)
					_, err := toggled(r)
					if n, _ := r.Violations(); n > 0 || err != nil {
						met[way]++
					}
				}
			}
			if math.Abs(float64(met[0]-met[1])) > bound {
				t.Errorf("%s %s, %s: of %d machines %d violate something where every call is executed, %d otherwise",
					c.arch, c.protocol, m.Name, seeds, met[0], met[1])
			}
		}
	}
}

// TestStretchCold: in a stretch, sites at which calls meet nothing are as cold as all others, and hot again behind it.
func TestStretchCold(t *testing.T) {
	r := newRig(t, slowCases()[0])
	r.calls.publish(0, []int32{0, 1, 2, 3})
	r.patch = patcher{
		Patcher: poke.Patcher{Plan: []poke.Step{{Op: poke.Sync}}}, running: true, awaits: forAnswers, reached: 1e6,
	}
	r.stretch.watch(0)
	r.stretch.look = 1
	r.met()
	if !r.stretch.open || r.calls.hot > 1e-9 || r.drawn() > 1e-9 {
		t.Errorf("open %t; %g hot, %g drawn", r.stretch.open, r.calls.hot, r.drawn())
	}
	r.endStretch()
	if all := r.calls.batch.total(); r.stretch.open || math.Abs(r.calls.hot-all) > 1e-9 || r.drawn() != all {
		t.Errorf("open %t; %g hot, %g drawn, want %g", r.stretch.open, r.calls.hot, r.drawn(), all)
	}
}

// TestStretchBegins: each number of calls that doubles, one looks for a stretch, and one begins while the patcher waits
// for answers, nobody listens, no task parks, and nothing else can be met.
func TestStretchBegins(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"":               func(*rig) {},
		"for nothing":    func(r *rig) { r.patch.awaits, r.patch.next = forNothing, 1e6 },
		"for handlers":   func(r *rig) { r.patch.awaits = forHandlers },
		"every call":     func(r *rig) { r.cfg.Calls = Every },
		"a listener":     func(r *rig) { r.listener = new(cpus.Listener) },
		"parked tasks":   func(r *rig) { r.calls.parks = 0.5 },
		"it is open":     func(r *rig) { r.stretch.open = true },
		"a recent store": func(r *rig) { r.calls.recent = append(r.calls.recent, recentStore{upTo: 0.25}) },
		"a short round":  func(r *rig) { r.patch.reached = 10 },
	} {
		r := newRig(t, slowCases()[0])
		r.calls.publish(0, []int32{0, 1, 2, 3})
		r.patch = patcher{
			Patcher: poke.Patcher{Plan: []poke.Step{{Op: poke.Sync}}}, running: true, awaits: forAnswers, reached: 1e6,
		}
		r.stretch.watch(3)
		change(r)
		for range 23 {
			r.met()
		}
		if r.stretch.begun != 0 || r.stretch.look != 24 {
			t.Errorf("%s: after 23 calls %d have begun, and one looks after %d, want 24", name, r.stretch.begun, r.stretch.look)
		}
		r.met()
		want := 0
		if name == "" {
			want = 1
		}
		if r.stretch.begun != want || r.stretch.met != 24 || r.stretch.look != 48 {
			t.Errorf("%s: after 24 calls %d have begun, want %d; one looks after %d, want 48", name, r.stretch.begun, want,
				r.stretch.look)
		}
	}
}
