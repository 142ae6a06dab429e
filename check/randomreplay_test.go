// SPDX-License-Identifier: Apache-2.0

package check

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// drawnPlan draws the lines of a plan file: steps that some protocol has, some of them
// lazy or doubled, in an order that few protocols have, and programs for CPUs on their ways
// into the kernel, through an NMI and, where there are some offline, from there to online.
func drawnPlan(rt *rapid.T, offline bool) string {
	lazy := func() string { return rapid.SampledFrom([]string{"", " lazy"}).Draw(rt, "lazy") }
	round := 0
	sync := func() string { round++; return fmt.Sprintf("Sync %d%s", round, lazy()) }
	draw := func(lines ...string) string { return "    " + rapid.SampledFrom(lines).Draw(rt, "line") + "\n" }
	b := &strings.Builder{}
	b.WriteString("name: random\nbatching: whole\nevery batch:\n")
	shape := rapid.SampledFrom([]string{"breakpoint", "stopped", "word"}).Draw(rt, "shape")
	wait := func() {
		for range rapid.IntRange(0, 2).Draw(rt, "waits") {
			b.WriteString(draw(sync(), sync(), "Fence", "Fence", "SynchronizeRCU", "GracePeriod"))
		}
	}
	switch shape {
	case "breakpoint":
		b.WriteString("    Publish\n    for each patch\n        Write literal  if literal\n" +
			"        Write breakpoint\n    end\n")
		wait()
		b.WriteString("    for each patch\n        Write tail  if tail\n    end\n")
		wait()
		b.WriteString("    for each patch\n        Write head  if head\n    end\n")
		wait()
		b.WriteString("    Unpublish\n    WaitHandlers\n")
	case "stopped":
		b.WriteString("    StopMachine" + lazy() + "\n    for each patch\n        Write word\n" +
			"        Write literal  if literal\n    end\n")
		for range rapid.IntRange(0, 2).Draw(rt, "waits") {
			b.WriteString(draw("Fence", "Fence", sync()))
		}
		b.WriteString("    Resume\n")
		wait()
	case "word":
		b.WriteString("    for each patch\n        Write literal  if literal\n        Write word\n    end\n")
		wait()
	}
	section := func(name string, programs ...string) {
		if program := rapid.SampledFrom(append(programs, "", "")).Draw(rt, name); program != "" {
			b.WriteString(name + ":\n")
			for step := range strings.SplitSeq(program, "; ") {
				b.WriteString("    " + step + "\n")
			}
		}
	}
	section("entry", "enter; catch up", "call a site; enter; catch up", "enter; await resume; catch up", "enter",
		"catch up", "catch up; enter")
	section("exit", "leave")
	section("nmi", "enter; catch up; call a site; leave", "call a site; sync", "call a site", "enter; call a site; leave",
		"enter; catch up; call a site; leave again")
	if offline {
		section("online", "call a site; come online", "come online; call a site", "sync; come online", "come online",
			"call a site; sync; come online")
	}
	return b.String()
}

// TestEnginesAgreeOnRandomPlans: what the checker finds in plans and paths that nobody
// would write, the live and the timed engine do step by step.
func TestEnginesAgreeOnRandomPlans(t *testing.T) {
	if *long {
		if err := flag.Set("rapid.checks", "200000"); err != nil {
			t.Fatal(err)
		}
	}
	verdicts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		a, err := cpus.ParseArch(rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch"))
		if err != nil {
			rt.Fatal(err)
		}
		role := rapid.SampledFrom([]cpus.Role{cpus.Busy, cpus.Idle, cpus.IrqsOff, cpus.Isolated, cpus.Isolated,
			cpus.Offline}).Draw(rt, "role")
		text := drawnPlan(rt, role == cpus.Offline)
		p, err := poke.ParseProtocol("random.plan", []byte(text))
		if err != nil {
			verdicts["refused"]++
			return
		}
		s := explore.Setup{
			Arch: a, Protocol: p, Buffer: sched.Dynamic,
			Sites:   rapid.IntRange(1, 2).Draw(rt, "sites"),
			Fetch:   rapid.SampledFrom(cpus.Fetches()).Draw(rt, "fetch"),
			Refs:    rapid.SampledFrom([]int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}).Draw(rt, "refs"),
			Lookup:  int3.BTree,
			Preempt: rapid.IntRange(0, 3).Draw(rt, "preempt") == 0,
			Switch:  rapid.IntRange(0, 3).Draw(rt, "switch") == 0,
			Roles:   []cpus.Role{cpus.Busy, role},
		}
		if rapid.IntRange(0, 2).Draw(rt, "endless") == 0 {
			s.Workload = explore.Endless
		}
		m, err := s.Model()
		if err != nil {
			verdicts["refused"]++
			return
		}
		r, err := explore.Explore(t.Context(), m, explore.Options{LimitStates: 4000, Workers: 1})
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		verdicts[string(r.Verdict)]++
		if r.Trace == nil {
			return
		}
		for _, engine := range []sim.EngineKind{sim.LiveEngine, sim.TimedEngine} {
			if _, err := Replay(engine, m, r.Trace); err != nil {
				rt.Errorf("%s engine: %v\n%s, %d sites, cpus %s, fetch %s, refs %s, preempt %v, switch %v, workload %s\n%s%s",
					engine, err, a.Traits().Name, s.Sites, cpus.FormatRoles(s.Roles), s.Fetch, s.Refs, s.Preempt, s.Switch,
					s.Workload, text, r.Trace.ExplainIn(0))
			}
		}
	})
	t.Logf("%v", verdicts)
	if verdicts[string(explore.Unsafe)] == 0 {
		t.Errorf("%v: no plan is unsafe", verdicts)
	}
}

// TestPatchersWithSectionsApart: a plan that ends with a loop over patches, in a section of
// its own, is compiled for the sites of each patcher.
func TestPatchersWithSectionsApart(t *testing.T) {
	const text = "name: once\nbatching: whole\nevery batch:\nfor each patch\nWrite word\nend\nSync 1\n" +
		"once after:\nfor each patch\nFence\nend\n"
	p, err := poke.ParseProtocol("once.plan", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cpus.ArchNames() {
		a, err := cpus.ParseArch(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := (&explore.Setup{
			Arch: a, Protocol: p, Buffer: sched.Dynamic, Sites: 3, Patchers: 2, Roles: make([]cpus.Role, 3),
		}).Model()
		if err != nil {
			t.Fatal(err)
		}
		for i, program := range m.Programs {
			fences := 0
			for _, st := range program.Plan {
				if st.Op == poke.Fence {
					fences++
				}
			}
			// Each of two updates fences once for each patch, and once where stores wait
			// before the new ops can be called.
			if want := 2*len(program.Patches) + map[bool]int{true: 1}[a.Traits().StoresBuffered]; fences != want {
				t.Errorf("%s, patcher %d with %d patches: %d fences, want %d", name, i, len(program.Patches), fences, want)
			}
		}
	}
}
