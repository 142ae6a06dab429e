// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// sentences are all that is told of the steps of a model, up to so many states: of CPUs from which phase to which.
func sentences(t *testing.T, m *Model, limit int) []string {
	t.Helper()
	tr, before := tracer{m: m, e: newExpander(m, Reductions{}), limit: limit}, newWorld(m)
	number, told := numbersFrom(tr.e), map[string]bool{}
	err := tr.levels(t.Context(), func(words []uint64) bool {
		before.unpack(words)
		return true
	}, func(_ link, broken *cpus.Violation) (fresh, on bool) {
		a := tr.e.action
		s := tr.e.w.describe(before, a, tr.e.answers())
		line := s.Who + ": " + s.What
		if a.kind == stepCPU {
			line = fmt.Sprintf("%s -> %s: %s", before.cpu[a.who].Phase, tr.e.w.cpu[a.who].Phase, s.What)
		}
		told[line] = true
		if broken == nil {
			_, fresh = number.of(tr.e.next)
		}
		return fresh, true
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(told))
}

// TestSentences: whole lists of what is told of small machines, which were read one by one: that the words fit where
// a CPU was and where it is then, and which patcher does what.
func TestSentences(t *testing.T) {
	var out strings.Builder
	lazy := ""
	for _, file := range poke.ShippedPlans() {
		if file.Name == "breakpoint-lazy" {
			lazy = string(file.Text)
		}
	}
	const word = "name: x\nbatching: whole\nevery batch:\n    Write word\n    Sync 1\n"
	alone := strings.Replace(word, "    Sync 1\n", "", 1)
	for _, tt := range []struct {
		name, arch, protocol, file string
		change                     func(*Setup)
	}{
		{"x86_64 breakpoint", "x86_64", "breakpoint", "", func(*Setup) {}},
		{"arm64 native, preempted", "arm64", "native", "", func(s *Setup) { s.Preempt = true }},
		{"x86_64 breakpoint-lazy, isolated", "x86_64", "", lazy, func(s *Setup) { s.Roles[1] = cpus.Isolated }},
		{"riscv64 stop-machine, idle", "riscv64", "stop-machine", "", func(s *Setup) { s.Roles[1] = cpus.Idle }},
		{"arm64 word, endless, two patchers", "arm64", "word", "", func(s *Setup) {
			s.Workload, s.Patchers, s.Contend = Endless, 2, true
		}},
		{"arm64 hotplug", "arm64", "", alone +
			"online:\n    come online\n    sync\noffline:\n    go offline\n    call a site\n",
			func(*Setup) {}},
		{"x86_64 NMI", "x86_64", "", word + "nmi:\n    look at cr3\n    load kernel cr3\n    call a site\n    sync\n",
			func(s *Setup) { s.Roles[1], s.Fetch = cpus.Isolated, cpus.Quadword }},
		{"riscv64 native, no fence", "riscv64", "native", "", func(s *Setup) {
			s.Mutation = setup(t, "riscv64", "native", "no-fence", 2, 1).Mutation
		}},
		{"arm64 guard", "arm64", "", word +
			"site:\n    fetch guard\n    await guard\n    fetch site\n    call\n", func(*Setup) {}},
		{"x86_64 mapped pages", "x86_64", "", strings.Replace(word, "Write word", "for each patch\n    Map\n    Write word\n    end", 1),
			func(s *Setup) { s.Sites, s.Fetch = 2, cpus.Atomic }},
		{"arm64 direct calls", "arm64", "", strings.Replace(word, "Write word", "Write word\n    Write literal-low\n    Write literal-high", 1) +
			"site:\n    fetch site\n    look up direct call\n    call\n", func(*Setup) {}},
	} {
		s := setup(t, tt.arch, "word", "", 2, 1)
		if s.Protocol = poke.Named(tt.protocol, s.Arch.Traits()); tt.file != "" {
			var err error
			if s.Protocol, err = poke.ParseProtocol("x.plan", []byte(tt.file)); err != nil {
				t.Fatal(tt.name, err)
			}
		}
		tt.change(&s)
		m, err := s.Model()
		if err != nil {
			t.Fatal(tt.name, err)
		}
		fmt.Fprintf(&out, "%s:\n    %s\n", tt.name, strings.Join(sentences(t, m, 3000), "\n    "))
	}
	const golden = "testdata/sentences.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
