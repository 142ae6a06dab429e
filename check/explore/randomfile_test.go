// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// TestGraceIsNoRound: a CPU that stands between two calls answers a grace period
// without fetching afresh, whenever it was asked. No reduction may lose that.
func TestGraceIsNoRound(t *testing.T) {
	const file = "testdata/grace-round.plan"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []poke.Op{poke.GracePeriod, poke.SynchronizeRCU} {
		p, err := poke.ParseProtocol(file, []byte(strings.Replace(string(src), "GracePeriod", op.String(), 1)))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, "x86_64", "breakpoint", "", 2, 2)
		s.Protocol = p
		for _, r := range reductions {
			if got := explore(t, s, Options{Reduce: r.Reductions}); got.Verdict != Unsafe ||
				got.Violation.Property != cpus.TornFetch {
				t.Errorf("%s, reduce %s: %s %v, want a torn fetch", op, r.name, got.Verdict, got.Violation)
			}
		}
	}
}

// fileWaits and fileSteps are the lines that edited plans get; what is rare in plans is
// not rare here.
var (
	fileWaits = []string{"GracePeriod", "SynchronizeRCU", "Sync 9", "Sync 9 lazy", "Fence", "WaitHandlers"}
	fileSteps = []string{
		"StopMachine", "Resume", "Publish", "Unpublish", "Clear",
		"Write breakpoint", "Write head", "Write tail", "Write word", "Write literal",
	}
)

// editedFile draws a shipped protocol's file with some lines exchanged for others,
// left out, doubled, or moved.
func editedFile(rt *rapid.T) string {
	shipped := poke.ShippedPlans()
	text := string(shipped[rapid.IntRange(0, len(shipped)-1).Draw(rt, "file")].Text)
	var lines []string
	for line := range strings.Lines(text) {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimRight(line, " \n"))
		}
	}
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, " ") })
	join := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	for range rapid.IntRange(1, 6).Draw(rt, "edits") {
		if len(lines) <= first {
			break
		}
		edited := edit(rt, slices.Clone(lines), first)
		if _, err := poke.ParseProtocol("random.plan", []byte(join(edited))); err == nil {
			lines = edited // others would be refused
		}
	}
	return join(lines)
}

// edit changes one line behind the first few.
func edit(rt *rapid.T, lines []string, first int) []string {
	at := rapid.IntRange(first, len(lines)-1).Draw(rt, "at")
	switch rapid.SampledFrom([]string{"wait", "wait", "exchange", "insert", "delete", "move"}).Draw(rt, "edit") {
	case "wait":
		waits := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			op, _, _ := strings.Cut(strings.TrimSpace(l), " ")
			return op != "Sync" && op != "WaitHandlers" && op != "Fence"
		})
		if len(waits) > 0 {
			at = slices.Index(lines, rapid.SampledFrom(waits).Draw(rt, "which"))
			lines[at] = "    " + rapid.SampledFrom(fileWaits).Draw(rt, "wait")
		}
	case "exchange":
		if strings.HasPrefix(lines[at], " ") {
			lines[at] = "    " + rapid.SampledFrom(fileSteps).Draw(rt, "line")
		}
	case "insert":
		lines = slices.Insert(lines, at, "    "+rapid.SampledFrom(slices.Concat(fileSteps, fileWaits)).Draw(rt, "line"))
	case "delete":
		lines = slices.Delete(lines, at, at+1)
	case "move":
		other := rapid.IntRange(first, len(lines)-1).Draw(rt, "with")
		lines[at], lines[other] = lines[other], lines[at]
	}
	return lines
}

// TestReductionsOnEditedPlans compares searches with and without reductions on plan
// files near those that are shipped, on any machine. A plan that they do not agree
// on is printed as it is when nothing more can be taken from it, with the command.
func TestReductionsOnEditedPlans(t *testing.T) {
	manyPrograms(t)
	verdicts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		a, err := cpus.ParseArch(rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch"))
		if err != nil {
			rt.Fatal(err)
		}
		text := editedFile(rt)
		p, err := poke.ParseProtocol("random.plan", []byte(text))
		if err != nil {
			verdicts["refused"]++
			return
		}
		s := Setup{
			Arch: a, Protocol: p, Buffer: sched.Dynamic,
			Sites:   rapid.IntRange(1, 2).Draw(rt, "sites"),
			Fetch:   rapid.SampledFrom(cpus.Fetches()).Draw(rt, "fetch"),
			Refs:    rapid.SampledFrom([]int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}).Draw(rt, "refs"),
			Lookup:  rapid.SampledFrom([]int3.Lookup{int3.BTree, int3.Vector, int3.Hash}).Draw(rt, "lookup"),
			Preempt: rapid.IntRange(0, 3).Draw(rt, "preempt") == 0,
			Switch:  rapid.IntRange(0, 3).Draw(rt, "switch") == 0,
			Roles:   []cpus.Role{cpus.Busy},
		}
		roles := []cpus.Role{cpus.Busy, cpus.Busy, cpus.Idle, cpus.IrqsOff, cpus.Isolated}
		others := rapid.SampledFrom([][]int{{0}, {0}, {0}, {0, 1}, {0, 0}}).Draw(rt, "other CPUs") // equal ones, too
		for _, i := range others {
			if s.Roles = append(s.Roles, rapid.SampledFrom(roles).Draw(rt, "role")); i == 0 {
				s.Roles[len(s.Roles)-1] = s.Roles[1]
			}
		}
		if rapid.IntRange(0, 2).Draw(rt, "endless") == 0 {
			s.Workload = Endless
		}
		if s.Sites == 2 && rapid.IntRange(0, 4).Draw(rt, "patchers") == 0 {
			s.Patchers = 2
		}
		m, err := s.Model()
		if err != nil {
			verdicts["refused"]++
			return
		}
		verdict, wrong := agree(t, m)
		verdicts[verdict]++
		if wrong != "" {
			rt.Errorf(
				"%s\ntextpoke check --arch %s --plan random.plan --cpus %s --sites %d --fetch %s --refs %s --lookup %s "+
					"--workload %s%s\n%s",
				wrong,
				a.Traits().Name,
				cpus.FormatRoles(s.Roles),
				s.Sites,
				s.Fetch,
				s.Refs,
				s.Lookup,
				s.Workload,
				s.extras(),
				text,
			)
		}
	})
	t.Logf("%v", verdicts)
}

// manyPrograms lets a test draw a million programs with -long, beside the others that do.
func manyPrograms(t *testing.T) {
	if *long {
		if err := flag.Set("rapid.checks", "1000000"); err != nil {
			t.Fatal(err)
		}
	}
	t.Parallel()
}

// extras are the flags that are rarely given.
func (s *Setup) extras() (flags string) {
	if s.Preempt {
		flags += " --preempt"
	}
	if s.Switch {
		flags += " --switch"
	}
	if s.Patchers > 1 {
		flags += fmt.Sprintf(" --patchers %d", s.Patchers)
	}
	return flags
}

// someStates bounds the searches for random programs: those with more are not counted.
// Small machines break in small ways, and there are the more of them.
const someStates = 4000

// agree asks about a model with every reduction and without, and forces what breaks on
// the live machine. It returns the verdict, and what does not agree with it.
func agree(t *testing.T, m *Model) (verdict, wrong string) {
	search := func(r Reductions) (*search, *Result) {
		s, err := newSearch(m, Options{Reduce: r, LimitStates: someStates, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s, got
	}
	full, want := search(Reductions{})
	switch want.Verdict {
	case Incomplete:
		return string(Incomplete), ""
	case Unsafe:
		if err := full.findTrace(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if _, err := Replay(m, want.Trace); err != nil {
			wrong = fmt.Sprintf("on the live machine: %v\n%s", err, want.Trace.ExplainIn(0))
		}
	}
	for _, r := range []Reductions{{Symmetry: true, Sites: true}, {Order: true}, all, single} {
		_, got := search(r)
		if got.Verdict == Incomplete && want.Verdict == Unsafe {
			continue // it goes another way, and the limit comes first
		}
		if got.Verdict != want.Verdict {
			wrong += fmt.Sprintf("reduce %s: %s, want %s: %v\n", r, got.Verdict, want.Verdict, want.Violation)
		}
	}
	return string(want.Verdict), wrong
}

// TestPromises: who sends no round promises nothing, and is told so beside "safe".
func TestPromises(t *testing.T) {
	for src, want := range map[string]string{
		"name: silent\nevery batch:\n    Write word\n":            "nothing",
		"name: round\nevery batch:\n    Write word\n    Sync 1\n": "new text",
	} {
		p, err := poke.ParseProtocol("p.plan", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, "riscv64", "word", "", 2, 1)
		s.Protocol = p
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Promises(); got != want {
			t.Errorf("%s: promises %s, want %s", p.Name, got, want)
		}
	}
}
