// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
)

// TestGoldenTable: the verdicts, what breaks, and how soon.
func TestGoldenTable(t *testing.T) {
	var b bytes.Buffer
	if err := results.WriteCSV(&b, known(wholeAnswer(t)).table(t)); err != nil {
		t.Fatal(err)
	}
	golden(t, "mutations.csv", b.String())
}

// expectations are what manuals, commits and mails say of combinations, by
// architecture, protocol, mutation and fetch model; "*" is any.
var expectations = []struct{ arches, protocols, mutations, fetches, want, source string }{
	{"x86_64", "breakpoint native breakpoint-global per-site stop-machine", "-", "*", "safe",
		"ftrace of x86 since Linux 3.5 (breakpoints) and before (stop_machine)"},
	{"arm64", "word native stop-machine", "-", "*", "safe",
		"ftrace_make_call, arch/arm64/kernel/ftrace.c, since Linux 6.3; stop_machine is arch_ftrace_update_code's default"},
	{"riscv64", "native stop-machine fence-per-write", "-", "*", "safe",
		"ftrace of riscv64 since Linux 6.16, from 6.10 to 6.15, and until 6.9 with firmware fences"},
	{"x86_64", "word", "-", "weak coherent quadword", "torn-fetch",
		"Intel SDM vol. 3A, \"Guaranteed Atomic Operations\": five bytes anywhere are not one access"},
	{"x86_64 arm64", "fence-per-write", "*", "*", "deadlock",
		"c97bf629963e: rounds by interrupts while interrupts are masked"},

	{"x86_64", "breakpoint native breakpoint-global per-site", "drop-sync-1", "weak coherent", "torn-fetch",
		"Intel SDM vol. 3A, \"Handling Self- and Cross-Modifying Code\": serialise before modified code is executed"},
	{"x86_64", "breakpoint native breakpoint-global per-site", "drop-sync-2", "weak", "torn-fetch",
		"Intel SDM vol. 3A, \"Handling Self- and Cross-Modifying Code\": likewise of the second modification"},
	{"x86_64", "breakpoint native breakpoint-global per-site", "drop-sync-2", "coherent atomic", "safe",
		"fd4363fff3d9: according to Intel very likely not necessary"},
	{
		"x86_64",
		"breakpoint native breakpoint-global per-site",
		"no-breakpoint",
		"weak coherent atomic",
		"torn-fetch",
		"Intel SDM vol. 3A, \"Handling Self- and Cross-Modifying Code\": unsynchronised cross-modifying code",
	},
	{"x86_64", "breakpoint native breakpoint-global per-site", "drop-sync-1 drop-sync-2 no-breakpoint", "quadword",
		"torn-fetch", "AMD APM vol. 2, 7.6.1: one store within an aligned quadword; these sites lie in two"},
	{"arm64 riscv64", "breakpoint breakpoint-global per-site", "no-breakpoint", "*", "safe",
		"Arm ARM B2.2.5; Ziccif: one aligned word may be replaced under a running CPU"},
	{"*", "breakpoint native breakpoint-global per-site", "drop-sync-3-no-recheck", "*", "unhandled-breakpoint",
		"8e791f7eba4c, and the oopses of January 2024"},
	{"*", "breakpoint native breakpoint-global per-site", "late-publish", "*", "unhandled-breakpoint",
		"fd4363fff3d9: the handler must see the entry first"},
	{"*", "breakpoint native", "unsorted-batch", "*", "unhandled-breakpoint", "2aebf5ee43bf"},
	{"*", "breakpoint native", "overfull-batch", "*", "overflow", "2aebf5ee43bf"},
	{"arm64 riscv64", "word native", "misaligned-literal", "*", "torn-literal", "b3f11af9b2ce"},
	{"riscv64", "native word", "drop-sync-2", "*", "stale-after-completion",
		"RISC-V unprivileged manual, Zifencei: no other hart sees the store without its own fence.i"},
	{"riscv64", "native", "drop-sync-1", "*", "safe",
		"Linux 6.3 on arm64 does without a round for data: ftrace_rec_set_ops"},
	{"riscv64", "fence-per-write", "no-stop", "*", "half-pair",
		"ftrace_arch_code_modify_prepare: can't be patched while the kernel is running"},
	{"riscv64", "stop-machine", "no-stop", "*", "stale-after-completion", // as deep as half a pair; it is named first
		"RISC-V unprivileged manual, Zifencei: no other hart sees the store without its own fence.i"},
	{"x86_64", "stop-machine", "no-stop", "weak coherent", "torn-fetch",
		"Intel SDM vol. 3A, \"Handling Self- and Cross-Modifying Code\""},
	{"arm64", "native word", "no-grace-period", "*", "use-after-free", "e21aa341785c"},
	{"riscv64", "native word", "no-grace-period", "*", "use-after-free", "e21aa341785c"},
	{"x86_64", "native breakpoint breakpoint-global per-site", "no-grace-period", "*", "use-after-free", "e21aa341785c"},
}

// TestLiterature holds the matrix against what is known from elsewhere.
func TestLiterature(t *testing.T) {
	in := func(list, name string) bool { return list == "*" || slices.Contains(strings.Fields(list), name) }
	a := wholeAnswer(t)
	covered := map[*check.VerdictRow]bool{}
	for _, e := range expectations {
		n := 0
		for _, r := range a.all() {
			mutation := r.Mutation
			if mutation == "" {
				mutation = "-"
			}
			if !in(e.arches, archName(r)) || !in(e.protocols, r.Protocol) || !in(e.mutations, mutation) ||
				!in(e.fetches, r.Fetch.String()) {
				continue
			}
			n++
			covered[r] = true
			if got := outcome(r); got != e.want {
				t.Errorf("%s: %s, want %s (%s)", describe(r), got, e.want, e.source)
			}
		}
		if n == 0 {
			t.Errorf("nothing is about %+v", e)
		}
	}
	if len(covered) < 230 {
		t.Errorf("of %d rows only %d are held against anything", len(a.Rows), len(covered))
	}
}

// TestSameOnAnyNumberOfCores: the table is the same every time.
func TestSameOnAnyNumberOfCores(t *testing.T) {
	g := wholeGrid()
	g["arch"], g["protocol"] = []string{"x86_64", "riscv64"}, []string{"word", "stop-machine"}
	var tables []string
	for _, workers := range []int{1, 5} {
		o := search
		o.Workers = workers
		var b bytes.Buffer
		if err := results.WriteCSV(&b, ask(t, g, o).table(t)); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, b.String())
	}
	if tables[0] != tables[1] {
		t.Error("one core and five disagree")
	}
}

// TestEveryCombinationIsAsked: no protocol and no mutation is forgotten, none comes
// twice, and each row is what check answers when asked in its words.
func TestEveryCombinationIsAsked(t *testing.T) {
	a := wholeAnswer(t)
	want := map[string]bool{}
	for _, arch := range cpus.ArchNames() {
		traits := archNamed(arch).Traits()
		for _, name := range poke.Names() {
			p := poke.Named(name, traits)
			s, err := (&explore.Setup{Arch: archNamed(arch), Protocol: p, Sites: 2}).Shape()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range append([]poke.Mutation{{Name: asMeant}}, p.Mutations(s)...) {
				for _, f := range cpus.FetchNames() {
					want[strings.Join([]string{arch, name, m.Name, f}, " ")] = true
				}
			}
		}
	}
	for _, r := range a.all() {
		if !want[describe(r)] {
			t.Errorf("%s: not offered, or twice", describe(r))
		}
		delete(want, describe(r))
	}
	for w := range want {
		t.Errorf("%s: forgotten", w)
	}
	g := wholeGrid()
	g["sites"], g["cpus"] = []string{"1", "1"}, []string{"2", "2"}
	g["protocol"], g["fetch"] = []string{"word"}, g["fetch"][:1]
	questions, err := Questions(g)
	if err != nil || len(questions) != 2+4+5 {
		t.Errorf("%d questions, %v", len(questions), err)
	}
}

// TestPlacements: each mutation has its place, and where that is a special one the
// mutation does not show elsewhere.
func TestPlacements(t *testing.T) {
	for _, name := range poke.MutationNames() {
		if !slices.ContainsFunc(placements, func(p placement) bool { return p.Mutation == name }) {
			t.Errorf("%s: nobody says what it needs", name)
		}
	}
	if len(placements) != len(poke.MutationNames()) {
		t.Errorf("%d placements, %d mutations", len(placements), len(poke.MutationNames()))
	}
	plain := wholeGrid()
	plain["protocol"], plain["fetch"] = []string{"breakpoint"}, plain["fetch"][:1]
	special := 0
	for _, row := range ask(t, plain, search).Rows {
		if put[row.Mutation] == nil {
			continue
		}
		special++
		if row.Verdict != explore.Unsafe {
			t.Errorf("%s does not show where it is put", describe(&row))
		}
		q := *row.Question
		q.Buffer, q.Lookup, q.Order = sched.Dynamic, int3.BTree, sched.Table
		if err := q.Build(); err != nil {
			t.Fatal(err)
		}
		if r, err := q.Ask(t.Context(), search); err != nil || r.Verdict != explore.Safe {
			t.Errorf("%s shows anywhere: %v %v", describe(&row), outcome(&r), err)
		}
	}
	if special != 2*3 {
		t.Errorf("%d special places were tried", special)
	}
}

// TestUnexpected: what must be safe and is not is an error, what cannot be is none.
func TestUnexpected(t *testing.T) {
	if err := wholeAnswer(t).Unexpected(); err != nil {
		t.Error(err)
	}
	for spec, want := range map[string]string{
		"x86_64 word - weak":           "no store",
		"x86_64 word - atomic":         "no round",
		"arm64 fence-per-write - weak": "its rounds",
		"riscv64 word - weak":          "",
		"x86_64 stop-machine - atomic": "",
	} {
		if why := knownUnsafe(one(t, spec, 2, false).Question); !strings.HasPrefix(why, want) || (why == "") != (want == "") {
			t.Errorf("%s: %q", spec, why)
		}
	}
	g := wholeGrid()
	g["protocol"], g["preempt"] = []string{"stop-machine"}, []string{"true"}
	err := ask(t, g, search).Unexpected()
	if err == nil || err.Error() != "protocols break without any mutation: half-pair: riscv64 (stop-machine)" {
		t.Errorf("pairs under preemption: %v", err)
	}
}
