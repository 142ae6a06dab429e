// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestSetupsInWords: what no model can be made of is refused in one line, and what just can be is taken.
func TestSetupsInWords(t *testing.T) {
	const contends = "one patcher contends with no other: want 2 or more"
	for _, tt := range []struct {
		change func(*Setup)
		want   string
	}{
		{func(*Setup) {}, ""},
		{func(s *Setup) { s.Arch = nil }, "no instruction set"},
		{func(s *Setup) { s.Protocol = nil }, "no protocol"},
		{func(s *Setup) { s.Protocol = &poke.Protocol{} }, "no protocol"},
		{func(s *Setup) { s.Roles = nil }, "no CPU"},
		{func(s *Setup) { s.Roles = []cpus.Role{0, 99} }, "a CPU has a role that there is not"},
		{func(s *Setup) { s.Contend = true }, contends},
		{func(s *Setup) { s.Contend, s.Patchers = true, 1 }, contends},
		{func(s *Setup) { s.Contend, s.Patchers = true, 2 }, ""},
		{func(s *Setup) { s.Switch, s.Patchers = true, 2 }, ""},
		{func(s *Setup) { s.Contend, s.Patchers, s.Switch = true, 2, true }, "sites that several patchers contend for are " +
			"enabled and disabled: they do not go over from one ops to another"},
		{func(s *Setup) { s.Fetch = cpus.Fetch(len(cpus.FetchNames()) - 1) }, ""},
		{func(s *Setup) { s.Fetch = cpus.Fetch(len(cpus.FetchNames())) }, "a fetch model, a lookup or a kind of references " +
			"that there is not"},
		{func(s *Setup) { s.Lookup = int3.Lookup(len(int3.LookupNames())) }, "a fetch model, a lookup or a kind of " +
			"references that there is not"},
		{func(s *Setup) { s.Refs = int3.Refs(len(int3.RefsNames())) }, "a fetch model, a lookup or a kind of references " +
			"that there is not"},
		{func(s *Setup) { s.Sites = 0 }, "0 sites: every interleaving can be explored of 1 to 4"},
		{func(s *Setup) { s.Sites = 1 }, ""},
		{func(s *Setup) { s.Sites = MaxSites }, ""},
		{func(s *Setup) { s.Sites = MaxSites + 1 }, "5 sites: every interleaving can be explored of 1 to 4"},
		{func(s *Setup) { s.Patchers = 3 }, "3 patchers for 2 sites: each wants one"},
		{func(s *Setup) { s.Patchers, s.Contend = 3, true }, ""},
		{func(s *Setup) { s.Roles = make([]cpus.Role, MaxCPUs) }, ""},
		{func(s *Setup) { s.Roles = make([]cpus.Role, MaxCPUs+1) }, "9 CPUs: every interleaving can be explored of 1 to 8"},
		{func(s *Setup) { s.Roles[2] = cpus.Offline }, "an offline CPU takes no part: leave it out, or say how it comes " +
			`online (section "online" of the path)`},
		{func(s *Setup) { s.Early = true }, "no CPU is isolated: none comes in from user space early"},
		{func(s *Setup) { s.Early, s.Roles[2] = true, cpus.Isolated }, "protocol breakpoint leaves no CPU out: there is " +
			"nothing to be early for"},
		{func(s *Setup) { s.Preempt, s.Patchers, s.Roles = true, 2, s.Roles[:2] }, "2 CPUs for 2 patchers: a task that is " +
			"preempted needs one more to go on"},
		{func(s *Setup) { s.Patchers, s.Roles = 2, []cpus.Role{0, cpus.Isolated, cpus.Isolated} },
			"2 patchers on 1 CPUs that may house one"},
		{func(s *Setup) { s.Workload, s.Sites = Endless, MaxEndless }, ""},
		{func(s *Setup) { s.Workload, s.Patchers, s.Sites = Endless, 2, MaxEndless }, ""},
	} {
		s := setup(t, "x86_64", "breakpoint", "", 3, 2)
		tt.change(&s)
		_, err := s.Model()
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

// TestSizesOfModels: models that are made by hand are held to the same limits.
func TestSizesOfModels(t *testing.T) {
	step := poke.Step{Op: poke.Fence}
	for _, tt := range []struct {
		change func(*Model)
		want   string
	}{
		{func(m *Model) { m.Roles = nil }, "0 CPUs: every interleaving can be explored of 1 to 8"},
		{func(m *Model) { m.Programs = nil }, "0 patchers: want 1 to 3"},
		{func(m *Model) { m.Programs = slices.Repeat(m.Programs, 4) }, "4 patchers: want 1 to 3"},
		{func(m *Model) { m.Programs[0].Plan = nil }, "a plan of 0 steps: want 1 to 4095"},
		{func(m *Model) { m.Programs[0].Plan = slices.Repeat([]poke.Step{step}, 4096) },
			"a plan of 4096 steps: want 1 to 4095"},
		{func(m *Model) { m.Programs[0].Plan = slices.Repeat([]poke.Step{step}, 4095) }, ""},
		{func(m *Model) { m.Attached = []uint64{11, 12, 13, 14, 15, 16} }, ""},
		{func(m *Model) { m.Attached = []uint64{11, 12, 13, 14, 15, 16, 17} }, "9 ops: at most 8 can be told apart"},
		{many(255, poke.Step{Op: poke.Publish, To: 1}), ""},
		{many(256, poke.Step{Op: poke.Publish, To: 1}), "256 batches are published: at most 255 can be told apart"},
		{texts(maxTexts - 1), ""},
		{texts(maxTexts), "site 0 can have over 16 texts"},
		{func(m *Model) { m.Code.Sites = nil }, "0 sites: every interleaving can be explored of 1 to 4"},
		{func(m *Model) { m.Code.Stretch, m.Roles[0] = 2, cpus.IrqsOff }, ""},
		{func(m *Model) { m.Code.Stretch, m.Roles[0] = 0, cpus.IrqsOff },
			"stretches of 0 calls with interrupts masked: want 1 to 2"},
	} {
		s := setup(t, "x86_64", "native", "", 3, 1)
		base, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		m := &Model{Code: base.Code, Roles: base.Roles, Initial: base.Initial, Literals: base.Literals, NopOps: base.NopOps,
			Programs: base.Programs, anyEnd: true}
		tt.change(m)
		if err := m.Prepare(); (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

// many makes the program of a model so many times one step.
func many(n int, step poke.Step) func(*Model) {
	return func(m *Model) { m.Programs[0].Plan = slices.Repeat([]poke.Step{step}, n) }
}

// texts makes the program of a model write so many other texts to its site.
func texts(n int) func(*Model) {
	return func(m *Model) {
		p := &m.Programs[0]
		p.Patches, p.Plan = slices.Repeat(p.Patches[:1], n), nil
		for i := range p.Patches {
			p.Patches[i].New = p.Patches[i].Old.Splice(4, 1, isa.Text(i+1))
			p.Plan = append(p.Plan, poke.Step{Op: poke.Write, Part: poke.Word, From: int32(i), To: int32(i + 1)})
		}
	}
}

// TestNamesOfChoices: each name is read as what it names, and others are refused.
func TestNamesOfChoices(t *testing.T) {
	for _, name := range ReductionNames() {
		if r, err := ParseReductions(name); err != nil || r.String() != name {
			t.Errorf("%s: %s, %v", name, r, err)
		}
	}
	if r, err := ParseReductions("all"); err != nil || r != all || ReductionNames()[0] != "all" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := ParseReductions("no"); err == nil || err.Error() !=
		fmt.Sprintf("reduce \"no\": not one of %s", ReductionNames()) {
		t.Errorf("%v", err)
	}
	if got := (Reductions{Sites: true}).String(); got != "" {
		t.Errorf("a choice without a name is %q", got)
	}
	for _, name := range WorkloadNames() {
		if w, err := ParseWorkload(name); err != nil || w.String() != name {
			t.Errorf("%s: %s, %v", name, w, err)
		}
	}
	if w, err := ParseWorkload("endless"); err != nil || w != Endless || WorkloadNames()[0] != "endless" {
		t.Errorf("%s, %v", w, err)
	}
	if _, err := ParseWorkload("twice"); err == nil || !strings.HasPrefix(err.Error(), `workload "twice": not one of`) {
		t.Errorf("%v", err)
	}
}

// TestVerdictsRestOn: what a verdict takes for granted: the workload, the fetch model, where sites lie if that
// matters, who holds text_mutex, and what a return from a trap does.
func TestVerdictsRestOn(t *testing.T) {
	const rest = "not modelled: cache maintenance, alias mappings, non-maskable interrupts, nested traps"
	const afresh, not = "the return from a trap fetches afresh; ", "the return from a trap does not fetch afresh; "
	for _, tt := range []struct {
		arch, protocol string
		change         func(*Setup)
		want           string
		promises       string
		finer, data    bool // sites elsewhere would be seen in part; CPUs read data behind the text
	}{
		{"x86_64", "breakpoint", func(*Setup) {}, "workload once; fetch weak; " + afresh, "new text", false, true},
		{"x86_64", "word", func(s *Setup) { s.Fetch = cpus.Quadword }, "workload once; fetch quadword; sites at 4 mod 8; ",
			"nothing", false, false},
		{"x86_64", "word", func(s *Setup) { s.Offset = 8 }, "workload once; fetch weak; ", "nothing", false, false},
		{"x86_64", "native", func(s *Setup) { s.Patchers = 2 },
			"workload once; fetch weak; text_mutex held around every update; " + afresh, "new text", false, true},
		{"x86_64", "native", func(s *Setup) { s.Patchers, s.Mutation = 2, noMutex(t) },
			"workload once; fetch weak; no text_mutex; " + afresh, "new text", false, true},
		{"arm64", "native", func(s *Setup) { s.Workload, s.Sites = Endless, 1 }, "workload endless; fetch weak; ", "nothing",
			false, true},
		{"riscv64", "breakpoint", func(*Setup) {}, "workload once; fetch weak; " + not, "new text", false, true},
		{"riscv64", "native", func(*Setup) {}, "workload once; fetch weak; ", "new text", false, true},
		{"riscv64", "stop-machine", func(*Setup) {}, "workload once; fetch weak; ", "new text", true, false},
		{"riscv64", "stop-machine", func(s *Setup) { s.Offset = 3 }, "workload once; fetch weak; sites at 2 mod 8; ",
			"new text", false, false},
	} {
		s := setup(t, tt.arch, tt.protocol, "", 2, 2)
		tt.change(&s)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Assumes(); got != tt.want+rest {
			t.Errorf("%s %s: %q, want %q", tt.arch, tt.protocol, got, tt.want+rest)
		}
		on := ""
		if tt.data {
			on = m.Code.Traits.RestsOn
		}
		if m.Promises() != tt.promises || m.FinerElsewhere() != tt.finer || m.RestsOn() != on ||
			(m.Code.Traits.RestsOn != "") != (tt.arch == "riscv64") {
			t.Errorf("%s %s: promises %q, finer %v, rests on %q", tt.arch, tt.protocol, m.Promises(), m.FinerElsewhere(),
				m.RestsOn())
		}
	}
}

// TestCrossings: where a site lies across a border of quadwords, behind the usual place: five bytes from 4 on do,
// pairs of four bytes from 2, 4 and 6, single ones of riscv64 nowhere that is allowed. With weak fetches, or where
// one place is asked for, that is all.
func TestCrossings(t *testing.T) {
	for _, tt := range []struct {
		arch, protocol string
		fetch          cpus.Fetch
		offset         Offset
		want           []Offset
	}{
		{"x86_64", "word", cpus.Quadword, 0, []Offset{0, 5, 6, 7, 8}},
		{"x86_64", "word", cpus.Weak, 0, []Offset{0}},
		{"x86_64", "word", cpus.Quadword, 2, []Offset{2}},
		{"arm64", "word", cpus.Quadword, 0, []Offset{0}},
		{"riscv64", "stop-machine", cpus.Quadword, 0, []Offset{0, 3, 5, 7}},
	} {
		s := setup(t, tt.arch, tt.protocol, "", 2, 1)
		s.Fetch, s.Offset = tt.fetch, tt.offset
		if got, err := s.Crossings(); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s %s: %v, %v, want %v", tt.arch, tt.protocol, got, err, tt.want)
		}
	}
	s := setup(t, "arm64", "word", "", 2, 1)
	if s.Lengths = []int{2}; true {
		if _, err := s.Crossings(); err == nil {
			t.Error("sites of two bytes on arm64")
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

// TestRoomForStores: patchers that end make as many stores as they make, and of those that go on so many can be told
// apart as log.go says: by site, one for each text, for each CPU and two more, where a fetch asks for no order.
func TestRoomForStores(t *testing.T) {
	for _, tt := range []struct {
		fetch    cpus.Fetch
		workload Workload
		want     func(m *Model) int
	}{
		{cpus.Weak, Once, func(*Model) int { return 3 }},
		{cpus.Weak, Endless, func(m *Model) int { return len(m.texts[0]) + 2 + 2 }},
		{cpus.Coherent, Once, func(*Model) int { return 3 }},
		{cpus.Coherent, Endless, func(*Model) int { return maxStores }},
	} {
		s := setup(t, "x86_64", "native", "", 2, 1)
		s.Fetch, s.Workload = tt.fetch, tt.workload
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.logLength(3), tt.want(m); got != want {
			t.Errorf("%v, %v: room for %d stores, want %d", tt.fetch, tt.workload, got, want)
		}
	}
}

// TestBatchesOfDescendingPatches: a batch ends where an address is lower than the one before, and a kernel that queues in any
// order has one batch of them all.
func TestBatchesOfDescendingPatches(t *testing.T) {
	for _, tt := range []struct {
		mutation   string
		descending bool
		want       int // both ways
	}{{"", false, 2}, {"", true, 6}, {"unsorted-batch", false, 2}, {"unsorted-batch", true, 2}} {
		s := setup(t, "x86_64", "breakpoint", tt.mutation, 2, 3)
		s.Descending, s.Workload = tt.descending, Once
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, st := range m.Programs[0].Plan {
			if st.Op == poke.Publish {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%q, descending %v: %d batches, want %d", tt.mutation, tt.descending, got, tt.want)
		}
	}
}
