// SPDX-License-Identifier: Apache-2.0

package coexist

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/tracers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDocumented: every case that the kernel documents comes out, and all of them
// are asked.
func TestDocumented(t *testing.T) {
	r := trial.Must(t, Experiment)
	seen := map[string]bool{}
	for i := range r.Table.Rows {
		if doc := r.Cell(t, i, "documented"); doc != "" {
			seen[r.Cell(t, i, "documented_in")+r.Cell(t, i, "first")+r.Cell(t, i, "second")] = true
			if got := r.Cell(t, i, "errno"); got != doc {
				t.Errorf("%s, then %s: %s, documented %s", r.Cell(t, i, "first"), r.Cell(t, i, "second"), got, doc)
			}
		}
	}
	for _, c := range cases {
		if !seen[c.Source+c.First+c.Second] {
			t.Errorf("%s, then %s: documented and not asked", c.First, c.Second)
		}
	}
}

// TestRules holds every pair against the rules in words, which know neither flags
// nor lists: who changes the instruction pointer, who is called directly, who can
// be asked.
func TestRules(t *testing.T) {
	r := trial.Must(t, Experiment, "--arch", "x86_64")
	ip := func(k string) bool { return k == "livepatch" || k == "kprobe-ip" }
	bpf := func(k string) bool {
		return strings.HasPrefix(k, "fentry") || k == "fexit" || k == "fmod_ret" || k == "tracing-multi"
	}
	loner := func(k string) bool { return k == "direct" || k == "global-trampoline" } // cannot be asked
	probe := func(k string) bool { return strings.HasPrefix(k, "kprobe") }
	for i := range r.Table.Rows {
		first, second := r.Cell(t, i, "first"), r.Cell(t, i, "second")
		want := "0"
		switch {
		case first == "off" && second == "livepatch", first == "livepatch" && second == "off":
			want = "EBUSY"
		case probe(first) && probe(second), first == "livepatch" && second == "livepatch":
		case ip(first) && ip(second), ip(first) && loner(second), loner(first) && ip(second):
			want = "EBUSY"
		case first == "global-trampoline" && second == "global-trampoline": // metadata
		case loner(first) && bpf(second):
			want = "EINVAL"
		case bpf(first) && second == "global-trampoline":
			want = "EEXIST"
		case (loner(first) || bpf(first)) && loner(second):
			want = "EBUSY"
		case bpf(first) && second == "fentry-38":
			want = "E2BIG"
		case (first == "fentry" || first == "tracing-multi") && second == "fentry-same":
			want = "EBUSY"
		}
		if got := r.Cell(t, i, "errno"); got != want {
			t.Errorf("%s, then %s: %s, want %s", first, second, got, want)
		}
		if got := r.Cell(t, i, "result"); (got == "refused") != (want != "0") || (got == "silent") != (want == "0" &&
			(first == "off" || second == "off")) {
			t.Errorf("%s, then %s: %s", first, second, got)
		}
	}
}

// TestCalls: who is called in the end, and how.
func TestCalls(t *testing.T) {
	r := trial.Must(t, Experiment)
	want := map[[3]string][2]string{
		{"x86_64", "function", "fentry"}:  {"list, all registers", "function, BPF trampoline"},
		{"x86_64", "fentry", "function"}:  {"list, all registers", "function, BPF trampoline"},
		{"arm64", "function", "fentry"}:   {"list", "function, BPF trampoline"},
		{"x86_64", "fentry", "fexit"}:     {"direct trampoline", "BPF trampoline"},
		{"arm64", "graph", "fprobe-exit"}: {"entry, by literal", "graph"},
		{"x86_64", "graph", "graph"}:      {"own trampoline", "graph"},
		{"x86_64", "livepatch", "fexit"}:  {"list, all registers", "livepatch, BPF trampoline"},
		{"x86_64", "livepatch", "direct"}: {"own trampoline", "livepatch"},
		{"riscv64", "fentry", "fexit"}:    {"direct trampoline, through the entry", "BPF trampoline"},
		{"arm64", "kprobe", "function"}:   {"entry, by literal", "function"},
	}
	found := 0
	for i := range r.Table.Rows {
		key := [3]string{r.Cell(t, i, "arch"), r.Cell(t, i, "first"), r.Cell(t, i, "second")}
		if w, ok := want[key]; ok {
			found++
			if got := [2]string{r.Cell(t, i, "site"), r.Cell(t, i, "calls")}; got != w {
				t.Errorf("%v: %q, want %q", key, got, w)
			}
		}
		if key[1] == "livepatch" && key[2] == "fexit" && (r.Cell(t, i, "again") != "1" || r.Cell(t, i, "images") != "2") {
			t.Errorf("%v: generated %s times, %s again", key, r.Cell(t, i, "images"), r.Cell(t, i, "again"))
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d pairs", found, len(want))
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment)
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

// TestWrong: what is not asked rightly, and what is documented otherwise.
func TestWrong(t *testing.T) {
	for _, tt := range [][2]string{
		{"--arch=x86", "did you mean x86_64"},
		{"--first=livepach", "did you mean livepatch"},
		{"--first=fentry-38", "not one of"},
		{"--second=", "not one of"},
	} {
		if r := trial.Run(t, Experiment, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v, want %s", tt[0], r.Err, tt[1])
		}
	}
	study := spec.Study(Config{}, experiments.Lab{})
	odd := &row{Arch: "any", First: "one", Second: "other", Documented: &documented{Errno: tracers.EBUSY}}
	if err := study.Add(odd); err != nil {
		t.Fatal(err)
	}
	a, err := spec.Answer(study, study)
	if err != nil || a.No == nil || !strings.Contains(a.No.Error(), "one then other: 0, documented EBUSY") {
		t.Error(a, err)
	}
}

// TestCut: what was tried is told.
func TestCut(t *testing.T) {
	trial.CutShort(t, Experiment)
}
