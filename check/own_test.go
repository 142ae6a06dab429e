// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/sim/axis"
)

// only is the one question that choices make.
func only(t *testing.T, choices axis.Choices) *Question {
	t.Helper()
	all, notes, err := Questions(choices)
	if err != nil || len(all) != 1 || len(notes) != 0 {
		t.Fatalf("%v: %d questions, %q, %v", choices, len(all), notes, err)
	}
	return all[0]
}

// TestOrderOfAxes: mutations are multiplied when all is known that they depend on, and what no mutation depends on comes
// last.
func TestOrderOfAxes(t *testing.T) {
	first := []string{"arch", "layout", "plan", "protocol", "place", "cpus", "sites", "buffer", "order", "lookup", "refs",
		"patchers", "contend", "switch", "mutate", "fetch", "preempt"}
	var names []string
	for _, a := range Axes {
		names = append(names, a.Name)
	}
	if len(names) < len(first) || !slices.Equal(names[:len(first)], first) {
		t.Errorf("%q, want %q first", names, first)
	}
	for _, a := range ownAxes() {
		if !slices.Contains(names, a.Name) {
			t.Errorf("%q lack %s", names, a.Name)
		}
	}
	if slices.Index(names, "workload") > slices.Index(names, "early") {
		t.Errorf("%q: workload stood before early", names)
	}
}

// TestPresetsOfAxes: the values that are asked where nothing is chosen; asked for by name, they are the same.
func TestPresetsOfAxes(t *testing.T) {
	for name, want := range map[string]string{"buffer": "dynamic", "cpus": "2", "layout": "", "sites": "2", "patchers": "1",
		"workload": "endless"} {
		if got := Axes.Named(name).Default; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string][]string{"order": {"table", "descending"}, "layout": {"plain", "call-ops", "bti"},
		"workload": {"endless", "once"}, "place": {"0", "1", "2", "3", "4", "5", "6", "7", "all"}} {
		if got := Axes.Named(name).Names; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if names := Axes.Named("mutate").Names; !slices.Contains(names, AllMutations) || !slices.Contains(names, "drop-sync-1") {
		t.Errorf("mutations %q", names)
	}
	if doc := Axes.Named("cpus").Doc; !strings.Contains(doc, fmt.Sprint("up to ", explore.MaxCPUs, ",")) {
		t.Errorf("cpus: %q does not say how many", doc)
	}
	q := only(t, axis.Choices{"arch": {"x86_64"}})
	if got := q.Short(); !slices.Equal(got, []string{"--arch", "x86_64"}) && len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestOwnChoices: each gets into the model, and into the words that ask again.
func TestOwnChoices(t *testing.T) {
	for _, c := range []struct {
		name, value string
		in          func(s *explore.Setup) bool
	}{
		{"sites", "1", func(s *explore.Setup) bool { return s.Sites == 1 }},
		{"workload", "once", func(s *explore.Setup) bool { return s.Workload.String() == "once" }},
		{"preempt", "true", func(s *explore.Setup) bool { return s.Preempt }},
		{"early", "true", func(s *explore.Setup) bool { return s.Early }},
		{"patchers", "2", func(s *explore.Setup) bool { return s.Patchers == 2 }},
		{"contend", "true", func(s *explore.Setup) bool { return s.Contend }},
		{"switch", "true", func(s *explore.Setup) bool { return s.Switch }},
		{"order", "descending", func(s *explore.Setup) bool { return s.Descending }},
		{"lookup", "hash", func(s *explore.Setup) bool { return s.Lookup.String() == "hash" }},
		{"refs", "shared", func(s *explore.Setup) bool { return s.Refs.String() == "shared" }},
		{"fetch", "coherent", func(s *explore.Setup) bool { return s.Fetch.String() == "coherent" }},
		{"place", "5", func(s *explore.Setup) bool { return s.Offset.String() == "5" }},
		{"buffer", "1", func(s *explore.Setup) bool { return s.Buffer.Slots == 1 }},
	} {
		choices := axis.Choices{"arch": {"x86_64"}, "workload": {"once"}}
		switch c.name {
		case "early":
			choices["cpus"], choices["protocol"] = []string{"busy=1,isolated=1"}, []string{"breakpoint-lazy"}
		case "contend":
			choices["cpus"], choices["patchers"] = []string{"3"}, []string{"2"}
		case "patchers":
			choices["cpus"] = []string{"3"}
		}
		if before := only(t, choices); c.name != "workload" && c.in(&before.Setup) {
			t.Errorf("%s is %s where nothing was chosen", c.name, c.value)
		}
		choices[c.name] = []string{c.value}
		q := only(t, choices)
		if !c.in(&q.Setup) {
			t.Errorf("%s %s: %+v", c.name, c.value, q.Setup)
		}
		want := "--" + c.name
		if words := q.Short(); !slices.Contains(words, want) {
			t.Errorf("%s %s: %q does not say it", c.name, c.value, words)
		}
	}
	if words := only(t, axis.Choices{"arch": {"x86_64"}}).Flags(); slices.Contains(words, "--patchers") {
		t.Errorf("%q: one patcher is said, which there always is", words)
	}
}

// TestCounts: whole numbers from 1.
func TestCounts(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "2": 2, "17": 17} {
		if n, err := parseCount(text); n != want || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"0", "-1", "", "x", "1.5", "99999999999999999999"} {
		if n, err := parseCount(text); n != 0 || err == nil || err.Error() != `"`+text+`": want a whole number from 1` {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

// TestQuestionsRefused: a wrong choice is an error that says which, and makes no question.
func TestQuestionsRefused(t *testing.T) {
	for _, c := range []struct {
		choices axis.Choices
		want    string
	}{
		{axis.Choices{"cpus": {"1"}},
			"cpus 1: the patcher sits on the only CPU, and no other executes a site meanwhile: want 2 or more"},
		{axis.Choices{"arch": {"x86_64"}, "layout": {"call-ops"}}, "call-ops"},
		{axis.Choices{"arch": {"z80"}}, "z80"},
		{axis.Choices{"sites": {"0"}}, `"0": want a whole number from 1`},
		{axis.Choices{"arch": {"x86_64"}, "sites": {"99"}}, "native on x86_64: "},
		{axis.Choices{"arch": {"arm64"}, "protocol": {"native"}, "mutate": {"no-such"}}, "no-such"},
		{axis.Choices{"arch": {"x86_64"}, "mutate": {AllMutations}, "layout": {"call-ops"}}, "call-ops"},
		{axis.Choices{"arch": {"x86_64"}, "mutate": {AllMutations}, "sites": {"99"}}, "99"},
		{axis.Choices{"nothing": {"1"}}, "nothing"},
	} {
		all, notes, err := Questions(c.choices)
		if err == nil || !strings.Contains(err.Error(), c.want) || all != nil || notes != nil {
			t.Errorf("%v: %d questions, %q, %v, want %q", c.choices, len(all), notes, err, c.want)
		}
	}
}

// TestAllMutations: of each protocol those that it offers, and none first; a mutation that one of several protocols lacks
// is left out there, and that is said.
func TestAllMutations(t *testing.T) {
	all, notes, err := Questions(axis.Choices{"arch": {"x86_64", "arm64"}, "mutate": {AllMutations}})
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	var got, want []string
	for _, q := range all {
		got = append(got, q.Arch.Traits().Name+" "+q.Mutation)
	}
	for _, arch := range []string{"x86_64", "arm64"} {
		q := only(t, axis.Choices{"arch": {arch}})
		shape, err := q.Setup.Shape()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, arch+" ")
		for _, m := range q.Setup.Protocol.Mutations(shape) {
			want = append(want, arch+" "+m.Name)
		}
	}
	if !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("%q, want %q", got, want)
	}
	all, notes, err = Questions(axis.Choices{"arch": {"x86_64", "arm64"}, "mutate": {"drop-sync-2"}})
	if err != nil || len(all) != 1 || all[0].Arch.Traits().Name != "x86_64" ||
		!slices.Equal(notes, []string{"left out: native on arm64, which has no drop-sync-2"}) {
		t.Errorf("%d questions, %q, %v", len(all), notes, err)
	}
}

// TestLayoutOfPlans: a plan that changes no literal is about plain sites, unless a layout is chosen or it changes
// literals.
func TestLayoutOfPlans(t *testing.T) {
	const steps = "name: p\nevery batch:\n    Write word\n"
	for _, c := range []struct{ text, layout, want string }{
		{steps, "", isa.LayoutPlain}, {steps, "call-ops", isa.LayoutCallOps},
		{steps + "    Write literal if literal\n", "", isa.LayoutCallOps},
	} {
		choices := axis.Choices{"arch": {"arm64"}, "plan": {planFile(t, c.text)}}
		if c.layout != "" {
			choices["layout"] = []string{c.layout}
		}
		if got := only(t, choices).Setup.Arch.Traits().Layout; got != c.want {
			t.Errorf("%q, layout %q: %s, want %s", c.text, c.layout, got, c.want)
		}
	}
	if got := only(t, axis.Choices{"arch": {"arm64"}}).Setup.Arch.Traits().Layout; got != isa.LayoutCallOps {
		t.Errorf("native: %s", got)
	}
}

// planFile is a file that holds the text of a plan.
func planFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.plan")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
