// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// How many proofs of random plans are held against the explorer, and up to how many states
// each of its machines is followed.
const (
	fewProofs  = 15
	manyProofs = 5000
	someStates = 20_000
	fewStates  = 5000 // in which an update that never ends is looked for
)

// TestRandomPlans: no plan that is proved is found unsafe on a small machine: not of plans
// that have loops, several of them, and steps in every section, with what CPUs do drawn as
// well, on every architecture, with every fetch model and kind of references.
func TestRandomPlans(t *testing.T) {
	want := fewProofs
	if *long {
		want = manyProofs
	}
	counts := map[string]int{}
	for counts["proved"] < want && !t.Failed() {
		rapid.Check(t, func(rt *rapid.T) { oneRandomPlan(rt, counts) })
	}
	t.Logf("%v", counts)
}

// oneRandomPlan draws a plan and holds its proof, if there is one, against the explorer.
func oneRandomPlan(rt *rapid.T, counts map[string]int) {
	a, err := cpus.ParseArch(rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch"))
	if err != nil {
		rt.Fatal(err)
	}
	s := explore.Setup{
		Arch: a, Sites: 1, Roles: make([]cpus.Role, 2), Buffer: sched.Dynamic,
		Fetch:   rapid.SampledFrom([]cpus.Fetch{cpus.Weak, cpus.Weak, cpus.Coherent, cpus.Atomic}).Draw(rt, "fetch"),
		Refs:    rapid.SampledFrom([]int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}).Draw(rt, "refs"),
		Lookup:  rapid.SampledFrom([]int3.Lookup{int3.BTree, int3.Vector, int3.Hash}).Draw(rt, "lookup"),
		Preempt: rapid.IntRange(0, 3).Draw(rt, "preempt") == 0,
	}
	if rapid.IntRange(0, 3).Draw(rt, "several") == 0 {
		s.Patchers = 2
	}
	text := randomPlan(rt, a.Traits().StoresBuffered)
	if s.Protocol, err = poke.ParseProtocol("random.plan", []byte(text)); err != nil {
		counts["refused"]++
		return
	}
	p, err := Close(rt.Context(), &s)
	switch {
	case err != nil: // its path or its steps are none of this architecture's
		counts["refused"]++
		return
	case !p.Closed():
		counts["not proved"]++
		return
	}
	counts["proved"]++
	for section, what := range map[string]string{"online:": "CPUs come online", offline: "CPUs go offline", "nmi:": "NMIs come"} {
		if strings.Contains(text, section) {
			counts["proved, and "+what]++
		}
	}
	if s.Patchers > 1 {
		counts["proved, and patchers are several"]++
	}
	if s.Preempt {
		counts["proved, and tasks are preempted"]++
	}
	if p.Stuck == "" {
		counts["proved, and updates end"]++
		neverStuck(rt, s, text)
	}
	for _, n := range sizes(s) {
		if found := breaksOn(rt, s, n); found != nil {
			rt.Errorf("%s %s, fetch %s, refs %s, lookup %s, %v: proved, and the explorer finds %v\n%s", a.Traits().Name,
				s.Protocol.Name, s.Fetch, s.Refs, s.Lookup, n, found, text)
		}
	}
}

// sizes are the machines on which a proof is held against the explorer. Each patcher wants a site and a CPU, and
// preempted tasks want one more.
func sizes(s explore.Setup) []size {
	switch {
	case s.Patchers > 1 && s.Preempt:
		return []size{{3, 2}}
	case s.Patchers > 1:
		return []size{{2, 2}, {3, 2}}
	}
	return []size{{2, 1}, {2, 2}, {3, 1}}
}

// neverStuck holds a proof that updates end against the explorer.
func neverStuck(rt *rapid.T, s explore.Setup, text string) {
	other := lastRoles
	if s.Preempt { // an idle CPU takes no task up
		other = other[:3]
	}
	m := endless(rt, s, sizes(s)[0], other)
	r, err := explore.Liveness(rt.Context(), m, explore.Options{LimitStates: fewStates})
	if err != nil {
		rt.Fatal(err)
	}
	if v := r.Violation; v != nil && v.Property != cpus.StuckCPU {
		rt.Errorf("%s, refs %s: updates end, and the explorer finds %v\n%s", s.Arch.Traits().Name, s.Refs, v, text)
	}
}

// breaksOn is what a machine breaks that goes on for ever, as far as it is followed.
func breaksOn(rt *rapid.T, s explore.Setup, n size) *cpus.Violation {
	all, _ := explore.ParseReductions("all")
	r, err := explore.Explore(rt.Context(), endless(rt, s, n, lastRoles), explore.Options{Reduce: all, Workers: 1,
		LimitStates: someStates})
	if err != nil {
		rt.Fatal(err)
	}
	return r.Violation
}

// lastRoles are what the last CPU of a machine is drawn from.
var lastRoles = []cpus.Role{cpus.Busy, cpus.Busy, cpus.IrqsOff, cpus.Idle}

// endless is a machine of a setup that goes on for ever.
func endless(rt *rapid.T, s explore.Setup, n size, last []cpus.Role) *explore.Model {
	s.Workload, s.Sites, s.Roles = explore.Endless, n.sites, make([]cpus.Role, n.cpus)
	s.Roles[n.cpus-1] = rapid.SampledFrom(last).Draw(rt, "role")
	m, err := s.Model()
	if err == nil && m.Code.Path.Tells {
		if s.Roles[n.cpus-1] = cpus.Isolated; s.Patchers > n.cpus-1 {
			s.Roles = append(s.Roles, cpus.Isolated)
			s.Roles[n.cpus-1] = cpus.Busy
		}
		m, err = s.Model()
	}
	if err == nil && m.Code.Path.ComesUp {
		s.Roles = append(s.Roles, cpus.Offline)
		m, err = s.Model()
	}
	if err != nil {
		rt.Fatal(err)
	}
	return m
}

// The steps that a plan is drawn from, by what it is like: none of them waits for ever
// wherever it stands.
var (
	sections = []string{"once before", "every batch", "once after"}
	kinds    = map[string][]string{
		"traps": {"Publish", "Write breakpoint", "Sync", "Write tail if tail", "Write literal if literal", "Sync",
			"Write head if head", "Sync", "Unpublish", "WaitHandlers"},
		"word":  {"Write literal if literal", "Sync", "Write word", "Sync"},
		"stops": {"StopMachine", "Write literal if literal", "Write word", "Resume"},
	}
	extras = []string{"Sync", "Sync", "Sync lazy", "GracePeriod", "SynchronizeRCU", "Fence", "Write literal if literal",
		"Write literal-low if literal", "Write literal-high if literal", "StopMachine lazy", "Resume", "Write word", "Write tail if tail", "Write head", "Publish", "Unpublish", "WaitHandlers", "Clear"}
	paths = []string{
		"", "", "", "",
		"site:\n    load ops\n    fetch site\n    call\n",
		"site:\n    fetch site\n    call\n",
		"site:\n    await guard\n    sync\n    fetch site\n    load literal if literal\n    call\n",
		"site:\n    mask interrupts\n    fetch site\n    load literal if literal\n    unmask interrupts\n    call\n",
		"handler:\n    take reference\n    look up\n    give back\n    act\n",
		"handler:\n    take reference\n    look up\n    give back\n    sync\n    go back\n",
		"handler:\n    take reference\n    look up\n    give back\n    sync\n    skip\n",
		"handler:\n    look up\n    act\n",
		"miss:\n    fatal\n",
		"miss:\n    skip\n",
		"miss:\n    look again\n    skip\n",
		"miss:\n    go back\n",
		"entry:\n    enter\n    catch up\n",
		"entry:\n    enter\n    await resume\n    catch up\n",
		"entry:\n    catch up\n    enter\n",
	}
	nmis = []string{
		"nmi:\n    call a site\n",
		"nmi:\n    sync\n    call a site\n",
		"nmi:\n    catch up\n    call a site\n    load user cr3\n",
		"nmi:\n    look at cr3\n    load kernel cr3\n    sync\n    call a site\n    load user cr3\n",
		"nmi:\n    await resume\n    call a site\n",
	}
	online = []string{
		"online:\n    call a site\n    come online\n",
		"online:\n    come online\n    call a site\n",
		"online:\n    come online\n    sync\n",
		"online:\n    come online\n",
	}
	goes = []string{offline, offline + "    call a site\n"}
)

// randomPlan draws a plan file: the steps of a protocol that may work, edited, cut into
// sections and into loops.
func randomPlan(rt *rapid.T, buffered bool) string {
	steps := slices.Clone(kinds[rapid.SampledFrom([]string{"traps", "word", "word", "stops"}).Draw(rt, "kind")])
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(rt, "edits") {
		at := rapid.IntRange(0, len(steps)-1).Draw(rt, "at")
		extra := rapid.SampledFrom(extras).Draw(rt, "step")
		switch rapid.IntRange(0, 2).Draw(rt, "edit") {
		case 0:
			steps = slices.Insert(steps, at, extra)
		case 1:
			steps[at] = extra
		case 2:
			if len(steps) > 1 {
				steps = slices.Delete(steps, at, at+1)
			}
		}
	}
	fences := buffered && rapid.IntRange(0, 5).Draw(rt, "fences") > 0
	var cut [2]int // where the second and the third section begin
	for i := range cut {
		cut[i] = rapid.IntRange(0, len(steps)).Draw(rt, "cut")
	}
	slices.Sort(cut[:])
	var b strings.Builder
	fmt.Fprintf(&b, "name: random\nbatching: %s\n",
		rapid.SampledFrom([]string{"buffered", "whole", "single"}).Draw(rt, "batching"))
	up, locks := "", false
	switch rapid.IntRange(0, 7).Draw(rt, "comes up") {
	case 0, 1:
		up, locks = rapid.SampledFrom(online).Draw(rt, "online"), rapid.Bool().Draw(rt, "locks")
		if rapid.Bool().Draw(rt, "goes") {
			up += rapid.SampledFrom(goes).Draw(rt, "offline")
		}
	case 2, 3:
		up = rapid.SampledFrom(nmis).Draw(rt, "nmi")
	}
	round, alone := 0, rapid.IntRange(0, 4).Draw(rt, "text_mutex") == 0
	for i, list := range [][]string{steps[:cut[0]], steps[cut[0]:cut[1]], steps[cut[1]:]} {
		fmt.Fprintf(&b, "%s:\n", sections[i])
		if i == 0 && locks {
			fmt.Fprintln(&b, "    Lock cpu_hotplug_lock")
		}
		if i == 1 && alone {
			fmt.Fprintln(&b, "    Lock text_mutex")
		}
		writeSection(rt, &b, list, fences, &round)
		if i == 1 && alone {
			fmt.Fprintln(&b, "    Unlock text_mutex")
		}
		if i == 2 && locks {
			fmt.Fprintln(&b, "    Unlock cpu_hotplug_lock")
		}
	}
	b.WriteString(up)
	for range rapid.IntRange(0, 2).Draw(rt, "paths") {
		b.WriteString(rapid.SampledFrom(paths).Draw(rt, "path"))
	}
	return b.String()
}

// writeSection writes a section's steps, some of them in loops.
func writeSection(rt *rapid.T, b *strings.Builder, list []string, fences bool, round *int) {
	for len(list) > 0 {
		n := rapid.IntRange(1, len(list)).Draw(rt, "together")
		loop := rapid.Bool().Draw(rt, "loop")
		if loop {
			fmt.Fprintln(b, "    for each patch")
			if rapid.IntRange(0, 3).Draw(rt, "maps") == 0 {
				fmt.Fprintln(b, "    Map")
			}
		}
		for _, st := range list[:n] {
			if rest, ok := strings.CutPrefix(st, "Sync"); ok {
				*round++
				st = fmt.Sprintf("Sync %d%s", *round, rest)
			}
			fmt.Fprintln(b, "    "+st)
			if fences && (strings.HasPrefix(st, "Write") || st == "Publish" || st == "Unpublish") {
				fmt.Fprintln(b, "    Fence")
			}
		}
		if loop {
			fmt.Fprintln(b, "    end")
		}
		list = list[n:]
	}
}
