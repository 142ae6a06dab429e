// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// several is a setup with more than one patcher.
func several(t *testing.T, arch, protocol, mutation string) *explore.Setup {
	t.Helper()
	s := setup(t, arch, protocol, mutation)
	s.Patchers = 2
	return s
}

// TestSeveralPatchers: what is proved of one patcher is proved of several, each with sites of its own, and their updates
// end; also where tasks are preempted.
func TestSeveralPatchers(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range fewProtocols() {
			for _, preempt := range []bool{false, true} {
				one, more := setup(t, arch, protocol, ""), several(t, arch, protocol, "")
				one.Preempt, more.Preempt = preempt, preempt
				if preempt && !*long && protocol != poke.Native {
					continue
				}
				p := closed(t, more)
				if got, want := properties(p), properties(closed(t, one)); got != want || p.Stuck != "" {
					t.Errorf("%s %s, preempt %t: %q, may stay at %q; want %q", arch, protocol, preempt, got, p.Stuck, want)
				}
			}
		}
	}
}

// TestSeveralPatchersAndMutations: other patchers save no defect.
func TestSeveralPatchersAndMutations(t *testing.T) {
	for arch, wants := range breaks {
		for name, want := range wants {
			got := properties(closed(t, several(t, arch, poke.Native, name)))
			if !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s %s: %q, want %q", arch, name, got, want)
			}
		}
	}
}

// TestWithoutTextMutex: patchers that publish batches need it; those that only write words of their own do not. The
// explorer finds the same.
func TestWithoutTextMutex(t *testing.T) {
	all, _ := explore.ParseReductions("all")
	for _, c := range []struct{ arch, protocol, says string }{
		{"x86_64", "breakpoint", "Publish without text_mutex"},
		{"arm64", "breakpoint", "Publish without text_mutex"},
		{"x86_64", "stop-machine", ""},
		{"arm64", "word", ""},
		{"riscv64", "word", ""},
	} {
		s := several(t, c.arch, c.protocol, "")
		shape := poke.Shape{Traits: s.Arch.Traits(), Len: 4, Patches: 1, Patchers: 2}
		var err error
		if s.Mutation, err = s.Protocol.Mutation("no-mutex", shape); err != nil {
			t.Fatal(err)
		}
		p := closed(t, s)
		if p.Closed() != (c.says == "") || !strings.Contains(p.Why(), c.says) {
			t.Errorf("%s %s without text_mutex: %q, want %q", c.arch, c.protocol, p.Why(), c.says)
		}
		s.Sites, s.Roles = 2, make([]cpus.Role, 2)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Explore(t.Context(), m, explore.Options{Reduce: all, Workers: 1, LimitStates: 200_000})
		if err != nil || (r.Violation == nil) != (c.says == "") {
			t.Errorf("%s %s without text_mutex: the explorer finds %v, %v", c.arch, c.protocol, r.Violation, err)
		}
	}
}

// TestWhatOthersDo: each thing that another patcher does to a view is done in some view, and none while the view's own
// patcher has text_mutex. A batch that is left behind when it gives text_mutex back would be another one's.
func TestWhatOthersDo(t *testing.T) {
	s := several(t, "x86_64", "breakpoint", "")
	c := closed(t, s).closure
	for _, name := range []string{"takes text_mutex", "gives text_mutex back", "publishes", "unpublishes",
		"clears its batch"} {
		if !c.fired["another patcher "+name] {
			t.Errorf("no other patcher %s", name)
		}
	}
	both := 0
	for _, v := range c.views {
		at := c.places.list[v[place]]
		has := c.program.items[at.item].held.has(poke.TextMutex)
		if has && at.beside {
			t.Fatalf("two patchers have text_mutex: %s", c.spell(at))
		}
		if has {
			both++
			if len(c.stepsOfOthers(v[place])) > 0 {
				t.Fatalf("others work at %s", c.spell(at))
			}
		}
	}
	if both == 0 {
		t.Error("text_mutex is never held")
	}
	lazy, tasks := several(t, "x86_64", "breakpoint-lazy", ""), several(t, "x86_64", "breakpoint", "")
	tasks.Preempt = true
	if !closed(t, lazy).closure.fired["another patcher leaves a CPU out"] ||
		!closed(t, tasks).closure.fired["another patcher asks preempted tasks"] {
		t.Error("no other patcher leaves CPUs out, or asks preempted tasks")
	}
	late := closed(t, several(t, "x86_64", "breakpoint", "drop-sync-3")).Broken
	if !slices.ContainsFunc(late, func(b Break) bool {
		return b.Property == countOverwritten && b.Step == "another patcher publishes"
	}) {
		t.Errorf("a handler has come late when another patcher publishes: %v", late)
	}
	const lock, unlock = "    Lock text_mutex\n", "    Unlock text_mutex\n"
	text := trapsUp[:strings.Index(trapsUp, "online:")]
	for _, line := range [][2]string{{"once before:\n    Lock cpu_hotplug_lock\n", ""}, {"    Unlock cpu_hotplug_lock\n", ""},
		{"    Publish\n", lock + "    Publish\n"}, {"    Write tail", unlock + lock + "    Write tail"},
		{"    WaitHandlers\n", "    WaitHandlers\n" + unlock}} {
		text = strings.Replace(text, line[0], line[1], 1)
	}
	protocol, err := poke.ParseProtocol("left.plan", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Protocol = protocol
	if got := properties(closed(t, s)); !strings.Contains(got, string(batchLeft)) {
		t.Errorf("text_mutex is given back in the middle of a batch: %q, want %s", got, batchLeft)
	}
}

// TestOthersAreNotTold: sites that several want, and several patchers beside NMIs and CPUs that come online, are refused.
// What the explorer has no model of is no question.
func TestOthersAreNotTold(t *testing.T) {
	for _, text := range []string{withNMI(t, "breakpoint", "call a site"), trapsUp} {
		protocol, err := poke.ParseProtocol("beside.plan", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := several(t, "x86_64", "breakpoint", "")
		s.Protocol = protocol
		if p := closed(t, s); !strings.Contains(p.Condition, "several patchers beside") {
			t.Errorf("%s: %q", protocol.Name, p.Why())
		}
	}
	s := several(t, "x86_64", "breakpoint", "")
	s.Patchers = explore.MaxPatchers + 1
	if _, err := Close(t.Context(), s); err == nil || !strings.Contains(err.Error(), "want 1 to 3") {
		t.Errorf("%d patchers: %v", s.Patchers, err)
	}
	graces, err := poke.ParseProtocol("alone.plan", []byte("name: alone\nbatching: whole\nevery batch:\n    Lock text_mutex\n"+
		"    Write literal if literal\n    SynchronizeRCU\n    Write word\n    Sync 1\n    Unlock text_mutex\n"))
	if err != nil {
		t.Fatal(err)
	}
	s = several(t, "riscv64", "word", "no-grace-period")
	s.Protocol = graces
	if p := closed(t, s); !strings.Contains(p.Condition, "SynchronizeRCU without ftrace_lock") {
		t.Errorf("grace periods under text_mutex alone: %q", p.Why())
	}
	protocol, err := poke.ParseProtocol("graces.plan", []byte(strings.Replace(trapsUp[:strings.Index(trapsUp, "online:")],
		"    Lock cpu_hotplug_lock\n", "    SynchronizeRCU\n    Lock cpu_hotplug_lock\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	s = several(t, "x86_64", "breakpoint", "")
	s.Protocol = protocol
	if _, err := Close(t.Context(), s); err == nil || !strings.Contains(err.Error(), "grace periods at the same time") {
		t.Errorf("two grace periods at a time: %v", err)
	}
}

// TestOthersRequests: a CPU that answers another patcher owes the view's own patcher what it owed before, stands still for
// others for no time that the view knows of, and shares counts with handlers at others' sites.
func TestOthersRequests(t *testing.T) {
	s := several(t, "x86_64", "stop-machine", "")
	c := closed(t, s).closure
	answers, stops := 0, 0
	for _, v := range c.views {
		is := c.cpus.list[v[does]]
		for _, b := range c.stepsOfCPU(v[does], &v) {
			if !c.may(&v, &b, part{cpu: true, site: true}) {
				continue
			}
			to := c.after(&v, &b, part{cpu: true, site: true})
			switch {
			case is.Phase == cpus.Answering && is.Taken.Ticket == ofOthers:
				if answers++; to[asked] != v[asked] {
					t.Fatalf("an answer to another patcher: asked %d becomes %d", v[asked], to[asked])
				}
			case is.Phase == cpus.Arriving && v[stand] == runs:
				if stops++; to[stand] != runs {
					t.Fatalf("a CPU that stands still for another patcher: stand %d", to[stand])
				}
			}
		}
	}
	if answers == 0 || stops == 0 {
		t.Errorf("%d answers, %d stops for other patchers", answers, stops)
	}
	shared := several(t, "x86_64", "breakpoint", "")
	shared.Refs = int3.SharedRef
	m := closed(t, shared).closure.machine
	is, lets := &cell{m: m, of: &m.first}, map[bool]bool{} // no batch is published, and the patcher has no reference
	for more := true; more; more = is.Next() {
		is.begin(branch{})
		lets[is.Enter(0)] = true
		if slices.ContainsFunc(is.b.when, func(w cond) bool { return w.who != own }) {
			t.Errorf("a handler asks for others at this patcher's sites: %v", is.b.when)
		}
	}
	if !lets[true] || !lets[false] {
		t.Errorf("handlers are let in by those that are elsewhere: %v", lets)
	}
}

// TestPlansThatTakeTextMutex: such a plan promises what it does while it still has text_mutex, when stores may wait in a
// buffer yet. Steps behind the last Unlock are refused.
func TestPlansThatTakeTextMutex(t *testing.T) {
	const plan = `name: own
batching: whole
every batch:
    Lock text_mutex
    Write literal if literal
    Fence
    Write word
    Fence
    Sync 1
    Unlock text_mutex
`
	all, _ := explore.ParseReductions("all")
	for _, c := range []struct{ name, text, want string }{
		{"fences", plan, ""},
		{"no fence", strings.ReplaceAll(plan, "    Fence\n", ""), string(cpus.LostCall)},
		{"a step behind", plan + "    Sync 2\n", "Sync 2 without text_mutex"},
		{"a lock behind", strings.NewReplacer("    Lock text", "    Lock jump_label_mutex\n    Lock text").Replace(plan) +
			"    Unlock jump_label_mutex\n", ""},
	} {
		protocol, err := poke.ParseProtocol("own.plan", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		s := several(t, "riscv64", "word", "")
		s.Protocol, s.Fetch = protocol, cpus.Coherent
		p := closed(t, s)
		if p.Closed() != (c.want == "") || !strings.Contains(p.Why(), c.want) {
			t.Errorf("%s: %q, want %q", c.name, p.Why(), c.want)
		}
		s.Sites, s.Workload = 2, explore.Endless
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Explore(t.Context(), m, explore.Options{Reduce: all, Workers: 1, LimitStates: 50_000})
		if broken := r.Violation != nil; err != nil || broken && p.Closed() || broken != (c.want == string(cpus.LostCall)) &&
			!strings.Contains(c.want, "without") {
			t.Errorf("%s: the explorer finds %v, %v", c.name, r.Violation, err)
		}
	}
}
